from typing import Any

import pytest

from engine.status import read_outcome
from engine.status.containers import finished_at, started_at
from engine.status.outcome import Outcome, Reason, State
from engine.times import parse_time
from tests.unit.pods import STARTED, ended, pod, running, waiting

EVICTED = "The node was low on resource: memory."


@pytest.mark.parametrize(
    "unfinished",
    [
        pytest.param({"metadata": {}, "spec": {"containers": []}}, id="without a status"),
        pytest.param(pod(phase="Pending"), id="nothing reported"),
        pytest.param(pod(waiting("ContainerCreating"), phase="Pending"), id="creating"),
        pytest.param(pod(waiting("ErrImagePull", "x"), phase="Pending"), id="pulling"),
        pytest.param(pod(running()), id="running"),
        pytest.param(pod({"running": {}}), id="running without a time"),
        pytest.param(pod(running(), others={"redis": ended(1)}), id="a service has ended"),
        pytest.param(pod(running(), others={"redis": ended(0)}), id="a service is done"),
        pytest.param(
            pod(waiting("PodInitializing"), init={"prepare": ended(0)}, phase="Pending"),
            id="init is done",
        ),
        pytest.param(
            pod(
                running(),
                conditions=[{"type": "DisruptionTarget", "status": "True", "reason": "x"}],
            ),
            id="an announced disruption",
        ),
        pytest.param(pod(running(), phase="Unknown"), id="a silent node"),
    ],
)
def test_what_goes_on_has_no_outcome(unfinished: dict[str, Any]) -> None:
    assert read_outcome(unfinished) is None


@pytest.mark.parametrize(
    ("finished", "outcome"),
    [
        pytest.param(
            pod(ended(0), phase="Succeeded"), Outcome(Reason.SUCCEEDED, "", 0), id="success"
        ),
        pytest.param(
            pod(ended(3), phase="Failed"), Outcome(Reason.SCRIPT_FAILED, "exit code 3", 3), id="3"
        ),
        pytest.param(
            pod(ended(3, message="no such test\n"), phase="Failed"),
            Outcome(Reason.SCRIPT_FAILED, "exit code 3: no such test", 3),
            id="a termination message",
        ),
        pytest.param(
            pod(ended(143), phase="Failed"),
            Outcome(Reason.SCRIPT_FAILED, "exit code 143 (signal 15)", 143),
            id="a signal",
        ),
        pytest.param(
            pod(ended(255), phase="Failed"),
            Outcome(Reason.SCRIPT_FAILED, "exit code 255", 255),
            id="255 is no signal",
        ),
        pytest.param(
            pod(ended(0), others={"redis": running()}),
            Outcome(Reason.SUCCEEDED, "", 0),
            id="the main container's end is the job's end",
        ),
        pytest.param(
            pod(ended(0), others={"redis": ended(1)}, phase="Failed"),
            Outcome(Reason.SUCCEEDED, "", 0),
            id="a service failed, the job did not",
        ),
        pytest.param(
            pod(ended(0), sidecars={"redis": ended(137)}, phase="Succeeded"),
            Outcome(Reason.SUCCEEDED, "", 0),
            id="a sidecar was killed in the end",
        ),
        pytest.param(
            pod(ended(3), others={"redis": running()}),
            Outcome(Reason.SCRIPT_FAILED, "exit code 3", 3),
            id="failed while a service runs",
        ),
        pytest.param(
            pod(ended(137, "OOMKilled"), phase="Failed"),
            Outcome(Reason.OOM_KILLED, "out of memory", 137),
            id="out of memory",
        ),
        pytest.param(
            pod(
                ended(137, "OOMKilled"),
                phase="Failed",
                spec={
                    "containers": [{"name": "main", "resources": {"limits": {"memory": "256Mi"}}}]
                },
            ),
            Outcome(Reason.OOM_KILLED, "out of memory (limit 256Mi)", 137),
            id="out of its limit",
        ),
        pytest.param(
            pod(ended(128, "StartError", 'exec: "mak": not found'), phase="Failed"),
            Outcome(Reason.CONTAINER_CONFIG_ERROR, 'exec: "mak": not found', 128),
            id="the entry point is not there",
        ),
        pytest.param(
            pod(ended(127, "ContainerCannotRun"), phase="Failed"),
            Outcome(Reason.CONTAINER_CONFIG_ERROR, "ContainerCannotRun", 127),
            id="the entry point is not there, without a word",
        ),
        pytest.param(
            pod(
                ended(137),
                phase="Failed",
                reason="DeadlineExceeded",
                spec={"activeDeadlineSeconds": 5},
            ),
            Outcome(Reason.DEADLINE_EXCEEDED, "ran longer than its timeout of 5s", 137),
            id="deadline",
        ),
        pytest.param(
            pod(phase="Failed", reason="DeadlineExceeded", spec={"activeDeadlineSeconds": 5}),
            Outcome(Reason.DEADLINE_EXCEEDED, "ran longer than its timeout of 5s"),
            id="deadline while pulling",
        ),
        pytest.param(
            pod(ended(0), phase="Failed", reason="DeadlineExceeded"),
            Outcome(Reason.SUCCEEDED, "", 0),
            id="done before the deadline",
        ),
        pytest.param(
            pod(phase="Failed", reason="Evicted", message=EVICTED),
            Outcome(Reason.EVICTED, EVICTED),
            id="evicted before it ran",
        ),
        pytest.param(
            pod(ended(137), phase="Failed", reason="Evicted", message=EVICTED),
            Outcome(Reason.EVICTED, EVICTED, 137),
            id="evicted while it ran",
        ),
        pytest.param(
            pod(ended(0), phase="Failed", reason="Evicted", message=EVICTED),
            Outcome(Reason.SUCCEEDED, "", 0),
            id="done before it was evicted",
        ),
        pytest.param(
            pod(phase="Failed", reason="Preempting"),
            Outcome(Reason.EVICTED, "Preempting"),
            id="preempted",
        ),
        pytest.param(
            pod(phase="Failed", reason="UnexpectedAdmissionError", message="no GPU"),
            Outcome(Reason.EVICTED, "no GPU"),
            id="refused by the kubelet",
        ),
        pytest.param(
            pod(phase="Failed", reason="NodeLost"), Outcome(Reason.NODE_LOST, "NodeLost"), id="lost"
        ),
        pytest.param(
            pod(phase="Failed", reason="NodeShutdown", message="going down"),
            Outcome(Reason.NODE_LOST, "going down"),
            id="shut down",
        ),
        pytest.param(
            pod(
                ended(137),
                phase="Failed",
                conditions=[
                    {
                        "type": "DisruptionTarget",
                        "status": "True",
                        "reason": "PreemptionByScheduler",
                        "message": "preempted",
                    }
                ],
            ),
            Outcome(Reason.EVICTED, "preempted", 137),
            id="a disruption by condition",
        ),
        pytest.param(
            pod(
                ended(137),
                phase="Failed",
                conditions=[
                    {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC"}
                ],
            ),
            Outcome(Reason.NODE_LOST, "DeletionByPodGC", 137),
            id="a lost node by condition",
        ),
        pytest.param(
            pod(
                ended(3),
                phase="Failed",
                conditions=[{"type": "DisruptionTarget", "status": "False", "reason": "x"}],
            ),
            Outcome(Reason.SCRIPT_FAILED, "exit code 3", 3),
            id="a disruption that did not happen",
        ),
        pytest.param(
            pod(waiting("PodInitializing"), init={"prepare": ended(2)}, phase="Failed"),
            Outcome(Reason.SCRIPT_FAILED, "init container prepare: exit code 2", 2),
            id="an init container failed",
        ),
        pytest.param(
            pod(
                waiting("PodInitializing"),
                init={"prepare": ended(137, "OOMKilled")},
                phase="Failed",
            ),
            Outcome(Reason.OOM_KILLED, "init container prepare: out of memory", 137),
            id="an init container ran out of memory",
        ),
        pytest.param(
            pod(
                waiting("PodInitializing"),
                sidecars={"redis": ended(137)},
                init={"prepare": ended(2)},
                phase="Failed",
            ),
            Outcome(Reason.SCRIPT_FAILED, "init container prepare: exit code 2", 2),
            id="the sidecar was only killed with it",
        ),
        pytest.param(
            pod(phase="Failed", reason="OutOfcpu", message="no cpu left"),
            Outcome(Reason.EVICTED, "no cpu left"),
            id="the kubelet said no",
        ),
        pytest.param(
            pod(phase="Failed"),
            Outcome(Reason.CONTAINER_CONFIG_ERROR, "the pod failed without a word"),
            id="not a word",
        ),
        pytest.param(
            pod(phase="Succeeded"), Outcome(Reason.SUCCEEDED, "", 0), id="success by its phase"
        ),
    ],
)
def test_how_a_pod_ended(finished: dict[str, Any], outcome: Outcome) -> None:
    assert read_outcome(finished) == outcome


@pytest.mark.parametrize(
    ("reason", "state", "code"),
    [
        (Reason.SUCCEEDED, State.SUCCEEDED, 0),
        (Reason.SCRIPT_FAILED, State.FAILED, 1),
        (Reason.DEADLINE_EXCEEDED, State.FAILED, 1),
        (Reason.OOM_KILLED, State.FAILED, 1),
        (Reason.POD_DELETED, State.FAILED, 1),
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
    assert finished_at(pod(running())) is None
    assert started_at(pod()) is None
    assert parse_time("2026-01-01T12:00:10.123456789Z") is not None
