"""A deleted pod that a finalizer of others keeps: its job doesn't wait for what never comes."""

from typing import Any

import pytest

from engine.lifecycle.actions import CreatePod, Wait
from engine.status.outcome import Reason, State
from tests.unit.builders import make_job
from tests.unit.lifecycle.states import JOB, act, attempt, finished, record, written
from tests.unit.pods import ended, job_pod, running

KUEUE = "kueue.x-k8s.io/managed"


def held(*given: Any, finalizer: str = KUEUE, node: str = "node-1", **more: Any) -> dict[str, Any]:
    """The job's pod, which is being deleted."""
    pod = job_pod(JOB, *given, **more)
    pod["metadata"] |= {
        "deletionTimestamp": "2026-01-01T12:00:10Z",
        "deletionGracePeriodSeconds": 0,
        "finalizers": [finalizer],
    }
    pod["spec"]["nodeName"] = node
    return pod


def test_a_job_whose_pod_a_finalizer_keeps_does_not_run_for_ever_and_names_it() -> None:
    name = f"build-{JOB.run}-1"
    for pod in (held(ended(143), phase="Failed"), held(phase="Pending", node="")):
        closed = written(JOB, record(attempt()), pod)
        assert (closed.state, closed.reason) == (State.FAILED, Reason.POD_DELETED)
        words = f"pod {name} was deleted, and stays for its finalizer {KUEUE}"
        assert closed.message == words


def test_a_job_whose_pod_was_deleted_behind_its_gate_does_not_wait_for_a_finalizer() -> None:
    closed = written(JOB, record(attempt()), held(phase="Pending", node="", gated=True))
    assert closed.reason is Reason.POD_DELETED


@pytest.mark.parametrize(
    "pod",
    [
        held(running(), phase="Running"),
        held(ended(143), phase="Failed", finalizer="foregroundDeletion"),
    ],
    ids=["it runs", "Kubernetes' own"],
)
def test_a_pod_that_may_still_run_or_goes_by_itself_is_waited_for(pod: dict[str, Any]) -> None:
    assert isinstance(act(JOB, record(attempt(), state=State.RUNNING), pod), Wait)


def test_the_cause_of_such_a_deletion_is_told_where_there_is_one() -> None:
    """Kueue's finalizer goes a moment after its deletion: that moment decides on a retry."""
    words = "Preempted to accommodate a workload"
    condition = {"type": "TerminationTarget", "status": "True", "reason": "WorkloadEvicted"}
    pod = held(phase="Pending", node="", conditions=[{**condition, "message": words}])
    closed = written(JOB, record(attempt()), pod)
    assert (closed.reason, closed.message) == (Reason.PREEMPTED, words)


def test_no_later_run_waits_for_a_pod_that_a_finalizer_keeps() -> None:
    old = held(phase="Pending", node="")
    changed = make_job(script="other")
    over = finished(Reason.POD_DELETED, job=JOB)
    assert isinstance(act(changed, over, old), CreatePod)
