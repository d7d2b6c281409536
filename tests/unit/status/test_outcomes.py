from functools import partial
from typing import Any

import pytest

from engine.status.containers import finished_at, started_at
from engine.status.outcome import Outcome, Reason, State
from engine.status.pod_end import read_outcome
from engine.times import parse_time
from tests.unit.pods import CREATED, STARTED, ended, pod, running, waiting

INTERRUPTED = "failed to create containerd task: failed to create shim task: context canceled"
EVICTED = "The node was low on resource: memory."
TOO_LONG = "ran longer than its timeout of 5s"
INITIALIZING = waiting("PodInitializing")
pending, failed = partial(pod, phase="Pending"), partial(pod, phase="Failed")
succeeded, late = partial(pod, phase="Succeeded"), partial(failed, reason="DeadlineExceeded")


def evicted_by_kueue(message: str) -> list[dict[str, str]]:
    condition = {"type": "TerminationTarget", "status": "True", "reason": "WorkloadEvicted"}
    return [{**condition, "message": message}]


def disrupted(reason: str, message: str = "", status: str = "True") -> list[dict[str, str]]:
    words = {"message": message} if message else {}
    return [{"type": "DisruptionTarget", "status": status, "reason": reason, **words}]


UNFINISHED = {
    "without a status": {"metadata": {}, "spec": {"containers": []}},
    "nothing reported": pending(),
    "creating": pending(waiting("ContainerCreating")),
    "pulling": pending(waiting("ErrImagePull", "x")),
    "running": pod(running()),
    "running without a time": pod({"running": {}}),
    "a service has ended": pod(running(), others={"redis": ended(1)}),
    "a service is done": pod(running(), others={"redis": ended(0)}),
    "init is done": pending(INITIALIZING, init={"prepare": ended(0)}),
    "an announced disruption": pod(running(), conditions=disrupted("x")),
    "a service whose start was interrupted, which the kubelet starts again": pending(
        INITIALIZING, sidecars={"redis": ended(128, "StartError", INTERRUPTED)}
    ),
    "a silent node": pod(running(), phase="Unknown"),
}
FINISHED: dict[Reason, dict[str, tuple[dict[str, Any], str, int | None]]] = {
    Reason.SUCCEEDED: {
        "success": (succeeded(ended(0)), "", 0),
        "the main container's end is the job's end": (
            pod(ended(0), others={"redis": running()}),
            "",
            0,
        ),
        "a service failed, the job did not": (failed(ended(0), others={"redis": ended(1)}), "", 0),
        "a sidecar was killed in the end": (
            succeeded(ended(0), sidecars={"redis": ended(137)}),
            "",
            0,
        ),
        "done before the deadline": (late(ended(0)), "", 0),
        "done before it was evicted": (failed(ended(0), reason="Evicted", message=EVICTED), "", 0),
        "success by its phase": (succeeded(), "", 0),
    },
    Reason.SCRIPT_FAILED: {
        "3": (failed(ended(3)), "exit code 3", 3),
        "what it wrote is no cause of ours": (failed(ended(3, message="x")), "exit code 3", 3),
        "a signal": (failed(ended(143)), "exit code 143 (signal 15)", 143),
        "255 is no signal": (failed(ended(255)), "exit code 255", 255),
        "failed while a service runs": (
            pod(ended(3), others={"redis": running()}),
            "exit code 3",
            3,
        ),
        "a disruption that did not happen": (
            failed(ended(3), conditions=disrupted("x", status="False")),
            "exit code 3",
            3,
        ),
        "an init container failed": (
            failed(INITIALIZING, init={"prepare": ended(2)}),
            "init container prepare: exit code 2",
            2,
        ),
        "an init container was killed, and had said why": (
            failed(INITIALIZING, init={"prepare": ended(143, message="no room")}),
            "init container prepare: exit code 143 (signal 15)",
            143,
        ),
        "the sidecar was only killed with it": (
            failed(INITIALIZING, sidecars={"redis": ended(137)}, init={"prepare": ended(2)}),
            "init container prepare: exit code 2",
            2,
        ),
    },
    Reason.OOM_KILLED: {
        "out of memory": (failed(ended(137, "OOMKilled")), "out of memory", 137),
        "an init container ran out of memory": (
            failed(INITIALIZING, init={"prepare": ended(137, "OOMKilled")}),
            "init container prepare: out of memory",
            137,
        ),
    },
    Reason.CONTAINER_CONFIG_ERROR: {
        "the entry point is not there": (
            failed(ended(128, "StartError", 'exec: "mak": not found')),
            'exec: "mak": not found',
            128,
        ),
        "the entry point of an init container is not there": (
            failed(
                INITIALIZING, init={"prepare": ended(128, "StartError", 'exec: "mak": not found')}
            ),
            'init container prepare: exec: "mak": not found',
            128,
        ),
        "without a word": (failed(ended(127, "ContainerCannotRun")), "ContainerCannotRun", 127),
        "not a word": (failed(), "the pod failed without a word", None),
    },
    Reason.DEADLINE_EXCEEDED: {
        "deadline": (late(ended(137), spec={"activeDeadlineSeconds": 5}), TOO_LONG, 137),
        "deadline while pulling": (late(spec={"activeDeadlineSeconds": 5}), TOO_LONG, None),
    },
    Reason.EVICTED: {
        "evicted before it ran": (failed(reason="Evicted", message=EVICTED), EVICTED, None),
        "evicted while it ran": (
            failed(ended(137), reason="Evicted", message=EVICTED),
            EVICTED,
            137,
        ),
        "refused by the kubelet": (
            failed(reason="UnexpectedAdmissionError", message="no GPU"),
            "no GPU",
            None,
        ),
        "the kubelet said no": (
            failed(reason="OutOfcpu", message="no cpu left"),
            "no cpu left",
            None,
        ),
        "a disruption by condition": (
            failed(ended(137), conditions=disrupted("EvictionByEvictionAPI", "drained")),
            "drained",
            137,
        ),
        "by Kueue, whose queue was stopped": (
            failed(ended(143), conditions=evicted_by_kueue("The LocalQueue is stopped")),
            "The LocalQueue is stopped",
            143,
        ),
    },
    Reason.PREEMPTED: {
        "by the kubelet": (failed(reason="Preempting"), "Preempting", None),
        "by Kueue": (
            failed(ended(143), conditions=evicted_by_kueue("Preempted to accommodate a workload")),
            "Preempted to accommodate a workload",
            143,
        ),
        "by the scheduler": (
            failed(ended(137), conditions=disrupted("PreemptionByScheduler", "preempted")),
            "preempted",
            137,
        ),
    },
    Reason.NODE_LOST: {
        "the kubelet was stopped while it started the container": (
            failed(ended(128, "StartError", INTERRUPTED)),
            INTERRUPTED,
            128,
        ),
        "the kubelet was stopped while it started an init container": (
            failed(INITIALIZING, init={"prepare": ended(128, "StartError", INTERRUPTED)}),
            f"init container prepare: {INTERRUPTED}",
            128,
        ),
        "lost": (failed(reason="NodeLost"), "NodeLost", None),
        "shut down": (failed(reason="NodeShutdown", message="going down"), "going down", None),
        "a lost node by condition": (
            failed(ended(137), conditions=disrupted("DeletionByPodGC")),
            "DeletionByPodGC",
            137,
        ),
    },
}


@pytest.mark.parametrize("unfinished", UNFINISHED.values(), ids=UNFINISHED)
def test_what_goes_on_has_no_outcome(unfinished: dict[str, Any]) -> None:
    assert read_outcome(unfinished) is None


@pytest.mark.parametrize(
    ("reason", "how"), [(reason, how) for reason in FINISHED for how in FINISHED[reason]]
)
def test_how_a_pod_ended(reason: Reason, how: str) -> None:
    finished, message, code = FINISHED[reason][how]
    assert read_outcome(finished) == Outcome(reason, message, code)


@pytest.mark.parametrize(
    ("reason", "state", "code"),
    [
        (Reason.SUCCEEDED, State.SUCCEEDED, 0),
        (Reason.SCRIPT_FAILED, State.FAILED, 1),
        (Reason.DEADLINE_EXCEEDED, State.FAILED, 1),
        (Reason.OOM_KILLED, State.FAILED, 1),
        (Reason.CONTAINER_CONFIG_ERROR, State.FAILED, 1),
        (Reason.POD_DELETED, State.FAILED, 7),
        (Reason.EVICTED, State.FAILED, 7),
        (Reason.PREEMPTED, State.FAILED, 7),
        (Reason.NODE_LOST, State.FAILED, 7),
        (Reason.START_TIMEOUT, State.FAILED, 7),
        (Reason.CANCELLED, State.CANCELLED, 1),
        (Reason.IMAGE_PULL_FAILED, State.FAILED, 4),
        (Reason.INVALID_IMAGE, State.FAILED, 4),
        (Reason.QUOTA_EXCEEDED, State.FAILED, 5),
        (Reason.ADMISSION_REFUSED, State.FAILED, 5),
    ],
)
def test_every_reason_has_a_final_state_and_an_exit_code(
    reason: Reason, state: State, code: int
) -> None:
    assert reason.state is state
    assert reason.exit_code == code
    assert reason.state.is_final


def test_times_are_the_kubelets() -> None:
    assert started_at(pod(running())) == parse_time(STARTED)
    assert started_at(pod(ended(0))) == parse_time(STARTED)
    assert started_at(pod(ended(0, at=CREATED))) == parse_time(CREATED), "never after its end"
    assert finished_at(pod(running())) is None
    assert started_at(pod()) is None
    assert parse_time("2026-01-01T12:00:10.123456789Z") is not None
