"""An attempt whose image another job pulls first waits without a pod, and ends as that one."""

from msgspec.structs import replace

from engine.api.model import Job, JobObject
from engine.lifecycle.actions import Action, CreatePod, Wait, WriteRecord
from engine.lifecycle.record import Record
from engine.lifecycle.rules import decide
from engine.lifecycle.state import ImageHold
from engine.refs import JobKey
from engine.status.outcome import Reason, State
from tests.unit.builders import make_job
from tests.unit.lifecycle.states import (
    JOB,
    NOW,
    PULL_FAILURE,
    at,
    attempt,
    make_state,
    quota,
    record,
)

HOLD = ImageHold("main", "main:1", "Always", NOW, JobKey("ci", "first"), at(3))


def decided(
    *holds: ImageHold, known: Record | None = None, now: float = 0, job: Job = JOB
) -> Action:
    state = make_state(job, known, now=at(now))
    state.observed.image_holds = holds
    return decide(state)


def test_it_waits_for_the_scout_and_is_recorded_as_waiting_only_after_a_while() -> None:
    assert decided(HOLD) == Wait(at(3))
    scheduled = replace(HOLD, due=None)
    assert decided(scheduled) == Wait(at(5))
    action = decided(scheduled, now=5)
    assert isinstance(action, WriteRecord)
    waiting = action.record
    assert (waiting.state, waiting.reason) == (State.QUEUED, Reason.WAITING_FOR_IMAGE)
    assert waiting.message == "image main:1 is pulled by job ci/first first"
    assert waiting.queued_at == at(5)
    assert decided(scheduled, known=replace(waiting, version="7"), now=9) == Wait()
    assert isinstance(decided(known=replace(waiting, version="7"), now=9), CreatePod)


def test_a_run_that_is_tried_again_waits_as_one_that_begins() -> None:
    known = record(attempt(outcome=Reason.EVICTED))
    action = decided(replace(HOLD, due=None), known=known, now=5)
    assert isinstance(action, WriteRecord)
    assert (action.record.state, action.record.queued_at) == (State.QUEUED, known.queued_at)


def test_an_object_that_no_quota_refuses_says_that_it_waits_for_an_image() -> None:
    known = replace(record(state=State.QUEUED), object=JobObject("uid-0", 1))
    of_object = replace(JOB, object=known.object)
    action = decided(replace(HOLD, due=None), known=known, now=5, job=of_object)
    assert isinstance(action, WriteRecord)
    assert action.record.reason is Reason.WAITING_FOR_IMAGE
    refused = replace(known, refused="QuotaExceeded q")
    assert decided(replace(HOLD, due=None), known=refused, now=5, job=of_object) == Wait()


def test_what_waits_for_an_image_has_no_place_in_a_quotas_line_any_more() -> None:
    known = record(state=State.QUEUED, refused="QuotaExceeded q", message="exceeded quota: q")
    action = decided(replace(HOLD, due=None), known=known, now=5)
    assert isinstance(action, WriteRecord)
    assert action.record.refused == ""


def test_a_job_whose_turn_in_a_quotas_line_has_come_says_what_it_waits_for_once() -> None:
    state = make_state(JOB, now=at(9))
    state.observed.image_holds = (replace(HOLD, due=None),)
    state.observed.rejection = quota(8)
    action = decide(state)
    assert isinstance(action, WriteRecord)
    assert action.record.reason is Reason.WAITING_FOR_IMAGE
    again = make_state(JOB, replace(action.record, version="7"), now=at(9))
    again.observed.image_holds = state.observed.image_holds
    again.observed.rejection = state.observed.rejection
    assert decide(again) == Wait()


def test_what_has_failed_for_the_scout_has_failed_for_it_with_the_same_words() -> None:
    failed = replace(HOLD, scout=None, failure=PULL_FAILURE)
    action = decided(failed)
    assert isinstance(action, WriteRecord)
    over = action.record
    assert (over.state, over.reason) == (State.FAILED, Reason.IMAGE_PULL_FAILED)
    assert over.message == "attempt 1, main, Always: main:1: not found"
    assert over.attempts[0].uid == ""


def test_a_policy_that_is_left_is_next_and_containers_of_one_image_move_along() -> None:
    job = make_job(
        pullPolicy=["Always", "IfNotPresent"], services=[{"name": "web", "image": "main:1"}]
    )
    failed = replace(HOLD, scout=None, failure=PULL_FAILURE)
    action = decided(failed, replace(failed, container="web"), job=job)
    assert isinstance(action, WriteRecord)
    assert not action.record.state.is_final
    following = decided(known=replace(action.record, version="7"), job=job)
    assert isinstance(following, CreatePod)
    assert following.policies == {"main": "IfNotPresent", "web": "IfNotPresent"}
    assert following.attempt == 2
