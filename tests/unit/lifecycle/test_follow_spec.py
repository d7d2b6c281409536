"""What the record of a job says at once of its spec: that it is suspended, or which edit counts."""

from typing import Any

import pytest
from msgspec.structs import replace

from engine.api.model import Job, JobObject
from engine.lifecycle.actions import Action, CreatePod, DeletePod, Done, RefreshPod, WriteRecord
from engine.lifecycle.record import Record
from engine.lifecycle.rules import decide
from engine.lifecycle.rules.follow_spec import SUSPENDED
from engine.status.outcome import Reason, State
from tests.unit.builders import make_job
from tests.unit.lifecycle.states import JOB, attempt, finished, make_state, record
from tests.unit.pods import ended, job_pod, running

OBJECT = JobObject("uid-0", 2)
AS_OBJECT = replace(JOB, object=OBJECT)
HELD = make_job(suspend=True)
CHANGED_BEFORE = make_job(script="make first\n")
CHANGED = make_job(script="make other\n")


def decided(
    job: Job, known: Record | None, *pods: dict[str, Any], refused: bool = False, held: bool = False
) -> Action:
    state = make_state(job, known, *pods)
    state.observed.refused, state.observed.suspended = refused, held
    return decide(state)


def written(job: Job, known: Record | None, *pods: dict[str, Any]) -> Record:
    action = decided(job, known, *pods)
    assert isinstance(action, WriteRecord), action
    return action.record


def of_object(known: Record, generation: int = 2) -> Record:
    return replace(known, object=replace(OBJECT, generation=generation))


def test_a_suspended_job_says_so_once_and_begins_nothing() -> None:
    for known in (None, finished(job=CHANGED)):
        waits = written(HELD, known)
        assert (waits.state, waits.message, waits.attempts) == (State.QUEUED, SUSPENDED, ())
        assert not isinstance(decided(HELD, replace(waits, version="8")), WriteRecord | CreatePod)
    queued = record(job=HELD, message="exceeded quota: q")
    assert written(HELD, queued).message == SUSPENDED


def test_a_suspended_job_goes_on_with_what_has_begun_and_stays_over() -> None:
    runs = record(attempt(job=HELD), job=HELD, started_at=None)
    assert not isinstance(decided(HELD, runs, job_pod(HELD, gated=True)), DeletePod)
    assert decided(HELD, finished(job=HELD)) == Done()


def test_a_suspended_job_between_two_attempts_of_its_run_has_begun() -> None:
    tried = attempt(job=HELD, outcome=Reason.EVICTED)
    assert isinstance(decided(HELD, record(tried, job=HELD)), CreatePod)


def test_a_suspended_job_that_the_brake_holds_is_not_written_of() -> None:
    assert not isinstance(decided(HELD, None, held=True), WriteRecord)


@pytest.mark.parametrize("job", [replace(CHANGED, object=OBJECT), HELD])
def test_the_run_under_way_is_not_given_up_for_an_edit(job: Job) -> None:
    """Its attempt is closed first, if it is ended at all."""
    known = of_object(record(attempt(job=CHANGED_BEFORE), job=CHANGED_BEFORE, state=State.RUNNING))
    after = decided(job, known, job_pod(CHANGED_BEFORE, running()))
    assert not isinstance(after, WriteRecord) or after.record.run == CHANGED_BEFORE.run
    over = written(job, known, job_pod(CHANGED_BEFORE, ended(0), phase="Succeeded"))
    assert (over.run, over.state) == (CHANGED_BEFORE.run, State.SUCCEEDED)
    after_it = written(job, replace(over, version="8"))
    assert after_it.history[0].state is State.SUCCEEDED


def test_the_status_of_an_object_says_at_once_that_another_run_is_to_begin() -> None:
    changed = replace(CHANGED, object=OBJECT)
    new = written(changed, of_object(finished(), generation=1))
    assert (new.spec_hash, new.state, new.attempts) == (CHANGED.spec_hash, State.QUEUED, ())
    assert isinstance(decided(CHANGED, finished()), CreatePod | RefreshPod)  # a file's first write
    assert not isinstance(decided(changed, of_object(finished()), held=True), WriteRecord)


def test_the_status_of_an_object_follows_every_edit_and_is_written_once() -> None:
    over = of_object(finished(), generation=1)
    same = written(AS_OBJECT, over)
    assert (same.state, same.reason) == (State.SUCCEEDED, Reason.SUCCEEDED)
    assert decided(AS_OBJECT, of_object(finished())) == Done()
    assert isinstance(decided(AS_OBJECT, None), CreatePod)


def test_an_object_that_is_invalid_by_now_changes_nothing_in_the_record() -> None:
    assert decided(AS_OBJECT, of_object(finished(), generation=1), refused=True) == Done()
