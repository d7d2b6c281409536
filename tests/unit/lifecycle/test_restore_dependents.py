"""What the pod waits for and somebody deleted is looked up, and its loss is no failure yet."""

from typing import Any

import pytest

from engine.lifecycle.actions import CreateDependents, Wait
from engine.status.outcome import Reason
from tests.unit.lifecycle.states import JOB, NOW, act, at, attempt, record, written
from tests.unit.pods import CREATED, UID, ended, job_pod, running, waiting

POD = f"build-{JOB.run}-1"
OPEN = record(attempt())
SCHEDULED = {"type": "PodScheduled", "status": "True", "lastTransitionTime": CREATED}
"""Twenty seconds before NOW."""
PENDING: dict[str, Any] = {"phase": "Pending", "conditions": [SCHEDULED]}
CREATING = waiting("ContainerCreating")
LACKS = waiting("CreateContainerConfigError", f'secret "{POD}" not found')


def slow(**more: Any) -> dict[str, Any]:
    return job_pod(JOB, CREATING, **{**PENDING, **more})


def test_a_pod_that_says_what_it_lacks_is_restored_at_once() -> None:
    pod = job_pod(JOB, LACKS, phase="Pending")
    assert act(JOB, OPEN, pod) == CreateDependents(POD, UID, 1, {}, reported=True)


def test_a_pod_that_has_ended_is_not_restored() -> None:
    pod = job_pod(JOB, LACKS, phase="Failed", reason="Evicted")
    assert written(JOB, OPEN, pod).reason is Reason.EVICTED


def test_what_others_do_not_have_is_not_waited_for() -> None:
    theirs = waiting("CreateContainerConfigError", 'secret "theirs" not found')
    known = written(JOB, OPEN, job_pod(JOB, theirs, **PENDING), now=at(-15))
    assert known.reason is Reason.CONTAINER_CONFIG_ERROR


def test_so_is_one_whose_init_container_has_run() -> None:
    pod = job_pod(JOB, LACKS, init={"first": ended(0)}, phase="Pending")
    assert isinstance(act(JOB, OPEN, pod), CreateDependents)


def test_a_pod_that_is_slow_to_start_is_looked_after_once() -> None:
    assert act(JOB, OPEN, slow(), now=at(-11)) == Wait(at(-10))
    assert act(JOB, OPEN, slow()) == CreateDependents(POD, UID, 1, {}, reported=False)
    once = act(JOB, OPEN, slow(), looked_up={(UID, False): NOW})
    assert once == Wait(at(580)), "it is not looked at again and again"
    lacks = act(JOB, OPEN, job_pod(JOB, LACKS, **PENDING), looked_up={(UID, False): NOW})
    assert isinstance(lacks, CreateDependents)


@pytest.mark.parametrize(
    "pod",
    [
        slow(conditions=[]),
        slow(conditions=[{**SCHEDULED, "status": "False"}]),
        slow(gated=True),
        slow(deleted=CREATED),
        job_pod(JOB, running(), **{**PENDING, "phase": "Running"}),
        job_pod(JOB, ended(0), phase="Succeeded"),
        job_pod(JOB, CREATING, init={"first": running()}, **PENDING),
        job_pod(JOB, LACKS, deleted=CREATED, **PENDING),
    ],
)
def test_a_pod_that_needs_nothing_now_is_left_alone(pod: dict[str, Any]) -> None:
    assert not isinstance(act(JOB, OPEN, pod, settled=[UID]), CreateDependents)


def test_the_kubelet_has_half_a_minute_to_see_what_was_restored() -> None:
    pod = job_pod(JOB, LACKS, **PENDING)
    looked_up = {(UID, True): NOW}
    assert act(JOB, OPEN, pod, looked_up=looked_up, now=at(29)) == Wait(at(30))
    over = written(JOB, OPEN, pod, looked_up=looked_up, now=at(30))
    assert over.reason is Reason.CONTAINER_CONFIG_ERROR
    assert over.message == f'main: secret "{POD}" not found'


def test_a_secret_that_is_not_the_pods_own_is_not_waited_for() -> None:
    pod = job_pod(JOB, waiting("CreateContainerConfigError", 'secret "ci" not found'), **PENDING)
    over = written(JOB, OPEN, pod, looked_up={(UID, False): NOW})
    assert over.reason is Reason.CONTAINER_CONFIG_ERROR
