"""Pods that others hold back with scheduling gates: Queued, and their clocks stand still."""

from typing import Any

import pytest
from msgspec.structs import replace

from engine.lifecycle.actions import DeletePod, RefreshPod, RemoveSchedulingGate, Wait
from engine.status.outcome import Reason, State
from tests.unit.builders import make_config, make_job
from tests.unit.lifecycle.states import JOB, NOW, act, at, attempt, finished, record, written
from tests.unit.pods import CREATED, UID, ended, job_pod, running

KUEUE = "kueue.x-k8s.io/admission"
HELD = f"held by the scheduling gate {KUEUE}"
POD = f"build-{JOB.run}-1"
OPEN = record(attempt())
QUEUED = replace(OPEN, state=State.QUEUED, message=HELD)
LONG = at(90 * 24 * 3600)


def held(*gates: str, ours: bool = False, **more: Any) -> dict[str, Any]:
    """The job's pod, in whose gates these are."""
    pod = job_pod(JOB, gated=True, **more)
    own = pod["spec"]["schedulingGates"] if ours else []
    pod["spec"]["schedulingGates"] = [*({"name": gate} for gate in gates or (KUEUE,)), *own]
    return pod


def released(main: Any = None, **more: Any) -> dict[str, Any]:
    """The same without any gate; it has no node yet."""
    return job_pod(JOB, main, **more)


def test_a_pod_that_was_made_with_the_gate_of_somebody_else_is_recorded_as_queued() -> None:
    begun = written(JOB, None, held(ours=True), settled=[UID])
    assert (begun.state, begun.reason, begun.message) == (State.QUEUED, None, HELD)
    assert begun.open_attempt is not None
    assert begun.open_attempt.uid == UID


def test_the_engines_own_gate_is_removed_and_the_other_one_stays() -> None:
    opened = act(JOB, QUEUED, held(ours=True), settled=[UID])
    assert opened == RemoveSchedulingGate(POD, UID, gate_index=1, gate_count=2)


def test_as_long_as_it_is_held_nothing_happens_however_long_that_is() -> None:
    assert act(JOB, QUEUED, held()) == Wait()
    assert act(JOB, QUEUED, held(), now=LONG) == Wait()


def test_neither_does_a_timeout_that_the_engine_keeps() -> None:
    config = make_config("features: {activeDeadlineSeconds: false}")
    job = replace(make_job(config=config, timeout="1s"), spec_hash=JOB.spec_hash)
    assert act(job, QUEUED, held(), now=LONG) == Wait()


def test_a_gate_that_is_found_later_has_the_job_queued() -> None:
    """Once the API has said so: a watch may be behind."""
    assert act(JOB, OPEN, held(), asked={}) == RefreshPod(POD, UID)
    again = written(JOB, OPEN, held("example.com/a", "example.com/b"))
    assert again.state is State.QUEUED
    assert again.message == "held by the scheduling gates example.com/a, example.com/b"


def test_another_name_of_a_gate_is_no_write() -> None:
    assert act(JOB, QUEUED, held("example.com/another")) == Wait()


def test_the_time_to_start_counts_from_when_the_last_gate_was_seen_to_be_gone() -> None:
    begun = written(JOB, QUEUED, released(), now=LONG)
    assert (begun.state, begun.message) == (State.STARTING, "")
    assert begun.attempts[0].claimed_at == LONG
    later = LONG + (at(JOB.start_timeout) - NOW)
    assert act(JOB, begun, released(), now=LONG) == Wait(later)
    assert written(JOB, begun, released(), now=later).reason is Reason.START_TIMEOUT


@pytest.mark.parametrize("lasted", [5, 90 * 24 * 3600])
def test_one_that_runs_when_it_is_looked_at_again_is_running(lasted: int) -> None:
    pod = released(running(), startTime=CREATED, spec={"activeDeadlineSeconds": 3600})
    begun = written(JOB, QUEUED, pod, now=at(lasted))
    assert (begun.state, begun.message) == (State.RUNNING, "")


def test_one_that_has_ended_meanwhile_has_its_outcome() -> None:
    over = written(JOB, QUEUED, released(ended(3), phase="Failed"), now=LONG)
    assert over.reason is Reason.SCRIPT_FAILED


def test_one_that_is_deleted_while_it_is_held_was_deleted() -> None:
    """Kueue has a finalizer on it: it is there until Kueue lets go."""
    dying = held(deleted="2026-01-01T12:00:50Z")
    assert act(JOB, QUEUED, dying) == Wait()
    assert written(JOB, QUEUED, gone=[UID]).reason is Reason.POD_DELETED


def test_a_changed_spec_does_not_wait_for_one_that_is_held() -> None:
    changed = make_job(script="make other\n", onChange="Wait")
    assert written(changed, QUEUED, held()).reason is Reason.SUPERSEDED


def test_one_that_was_cancelled_while_it_is_held_goes_at_once() -> None:
    over = finished(Reason.CANCELLED)
    assert act(JOB, over, held()) == DeletePod(POD, UID, 0, "its attempt ended: Cancelled")


def test_a_pod_that_ends_before_its_gates_are_gone_is_no_start() -> None:
    over = released(phase="Failed", reason="Evicted")
    assert written(JOB, QUEUED, over).reason is Reason.EVICTED
