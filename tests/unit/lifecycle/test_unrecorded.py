"""Labels and names prove nothing: a pod is ours if its UID is in the record."""

from typing import Any

import pytest
from msgspec.structs import replace

from engine.lifecycle.actions import (
    CreateDependents,
    CreatePod,
    DeletePod,
    Done,
    RefreshPod,
    ReportError,
    Wait,
)
from engine.lifecycle.rules import decide
from engine.lifecycle.rules.resolve_unrecorded import NEVER_RAN
from engine.status.outcome import Reason, State
from tests.unit.lifecycle.states import (
    JOB,
    NOW,
    act,
    at,
    attempt,
    finished,
    make_state,
    quota,
    record,
    written,
)
from tests.unit.pods import UID, ended, job_pod, running, waiting

POD = f"build-{JOB.run}-1"
GATED = job_pod(JOB, gated=True)
RUNS = job_pod(JOB, running())
YOUNG = at(-18)


# Gated: it never ran


def test_a_gated_pod_in_no_record_gets_no_secret_and_is_not_let_go() -> None:
    """The record is written first, so that whoever made the pod can't record it any more."""
    claimed = written(JOB, None, GATED, made=())
    assert (claimed.state, claimed.attempts, claimed.queued_at) == (State.QUEUED, (), NOW)
    assert claimed.discarded == UID
    stored = replace(claimed, version="8")
    assert act(JOB, stored, GATED, made=()) == DeletePod(POD, UID, 0, NEVER_RAN)
    assert act(JOB, stored) == CreatePod(2, {})


@pytest.mark.parametrize(
    ("name", "following"), [(3, 4), (1, 2), (1_001, 1_002), (1_002, 1), (2**31 - 2, 1)]
)
def test_no_attempt_has_a_lower_number_than_a_pod_that_was_given_up(
    name: int, following: int
) -> None:
    """But for one that no engine can have made: it could leave no number to give."""
    stray = job_pod(JOB, gated=True, attempt=name)
    given_up = replace(written(JOB, None, stray, made=()), version="8")
    assert act(JOB, given_up) == CreatePod(following, {})


def test_a_pod_of_another_run_that_is_given_up_takes_no_number() -> None:
    stray = job_pod(JOB, gated=True, run="f" * 8, attempt=3, uid="uid-9")
    given_up = written(JOB, finished(Reason.EVICTED).again(), stray, made=())
    assert given_up.next_number == 2


def test_an_engine_that_made_the_pod_knows_when_it_was_given_up() -> None:
    """The record is another than the one that it made the pod by."""
    given_up = replace(written(JOB, None, GATED, made=()), version="8")
    assert act(JOB, None, GATED) == CreateDependents(POD, UID, 1, {})
    assert act(JOB, given_up, GATED, made=()) == DeletePod(POD, UID, 0, NEVER_RAN)


def test_an_engine_that_is_about_to_record_its_pod_gets_the_time_for_it() -> None:
    assert act(JOB, None, GATED, made=(), now=YOUNG) == Wait(at(-17))
    assert written(JOB, None, GATED, made=(), now=at(-17)).discarded == UID


def test_a_gated_pod_is_not_given_up_before_the_api_was_asked() -> None:
    assert act(JOB, None, GATED, made=(), asked={}) == RefreshPod(POD, UID)


def test_a_gated_pod_of_another_run_goes_before_this_one_begins() -> None:
    """It counts in a quota."""
    closed = record(attempt(outcome=Reason.EVICTED, finished_at=at(-300)))
    old = job_pod(JOB, gated=True, run="ffffffff", uid="uid-9")
    marked = written(JOB, closed, old, made=(), rejection=quota())
    assert marked == replace(closed, discarded="uid-9")
    action = act(JOB, marked, old, made=(), rejection=quota())
    assert action == DeletePod(f"build-{'f' * 8}-1", "uid-9", 0, NEVER_RAN)


def test_a_gated_pod_beside_a_finished_run_goes_too() -> None:
    assert isinstance(act(JOB, finished(), GATED, made=()), DeletePod)


def test_a_pod_that_another_engine_is_about_to_record_is_left_beside_a_run_that_is_over() -> None:
    """It is of the next run, perhaps of another revision of the spec, and was just made."""
    for more in ({"attempt": 2}, {"run": "f" * 8}):
        young = job_pod(JOB, gated=True, uid="uid-9", **more)
        assert act(JOB, finished(), young, made=(), now=YOUNG) == Wait(at(-17))
        given_up = written(JOB, finished(), young, made=(), now=at(-17))
        assert given_up.discarded == "uid-9"
        name = young["metadata"]["name"]
        removal = act(JOB, replace(given_up, version="8"), young, made=())
        assert removal == DeletePod(name, "uid-9", 0, NEVER_RAN)


def test_a_gated_pod_beside_an_attempt_that_is_under_way_is_left_alone() -> None:
    stray = job_pod(JOB, gated=True, attempt=2, uid="uid-9")
    under_way = record(attempt(), state=State.RUNNING)
    assert act(JOB, under_way, RUNS, stray, made=()) == Wait()


def test_a_strangers_gated_pod_keeps_no_other_from_being_given_up() -> None:
    theirs = job_pod(JOB, gated=True, attempt=5, labels={"jobs.engine/source": "nightly"})
    stray = job_pod(JOB, gated=True, attempt=2, uid="uid-9")
    assert written(JOB, None, theirs, stray, made=()).discarded == "uid-9"


def test_a_pod_of_another_number_is_no_matter_to_an_engine_that_has_begun() -> None:
    stray = job_pod(JOB, running(), attempt=7, uid="uid-9")
    assert act(JOB, None, GATED, stray, made=[UID]) == CreateDependents(POD, UID, 1, {})
    again = finished(Reason.EVICTED).again()
    assert act(JOB, again, stray, made=(), gone=[UID]) == CreatePod(2, {})


def test_a_gated_pod_of_another_source_is_refused_by_name() -> None:
    theirs = job_pod(JOB, gated=True, labels={"jobs.engine/source": "nightly"})
    words = "belongs to source 'nightly', not to 'default'"
    assert act(JOB, None, theirs, made=()) == refused(theirs, words)


def test_a_gated_pod_that_can_not_go_is_refused_by_name() -> None:
    held = job_pod(JOB, gated=True, deleted="2026-01-01T12:00:15Z")
    assert act(JOB, None, held, made=()) == Wait()
    held["metadata"]["finalizers"] = ["example.com/held"]
    words = (
        f"pod {POD} has this job's name and is in no record of it, and a finalizer keeps it there"
    )
    hint = "its finalizer has to go before the pod does; or rename the job"
    assert act(JOB, None, held, made=()) == ReportError(words, hint)


# Not gated: refused by name, with the command that removes it


def refused(
    pod: dict[str, Any], words: str = "has this job's name and is in no record of it"
) -> Any:
    name = pod["metadata"]["name"]
    removal = f"kubectl delete pod {name} -n ci removes it; or rename the job"
    return ReportError(f"pod {name} {words}", removal)


def test_a_running_pod_in_no_record_is_refused_by_name() -> None:
    assert act(JOB, None, RUNS, made=()) == refused(RUNS)
    later = job_pod(JOB, running(), attempt=2, uid="uid-2")
    assert act(JOB, None, later, made=()) == refused(later)


def test_a_pod_that_ran_and_whose_record_was_deleted_is_refused_and_the_job_not_run_again() -> None:
    second = job_pod(JOB, ended(0), attempt=2, uid="uid-2", phase="Succeeded")
    assert act(JOB, None, second, made=()) == refused(second)


def test_a_pod_in_no_record_that_is_on_its_way_out_is_waited_for() -> None:
    going = job_pod(JOB, running(), deleted="2026-01-01T12:00:15Z")
    assert act(JOB, None, going, made=()) == Wait()


def test_a_running_pod_of_another_run_in_no_record_is_refused_by_name() -> None:
    old = job_pod(JOB, running(), run="ffffffff")
    assert act(JOB, None, old, made=()) == refused(old)
    over = job_pod(JOB, ended(0), run="ffffffff", phase="Succeeded")
    assert act(JOB, None, over, made=()) == CreatePod(1, {})


def test_a_running_pod_that_says_it_is_anothers_is_refused_with_its_words() -> None:
    theirs = job_pod(JOB, running(), labels={"jobs.engine/source": "nightly"})
    words = "belongs to source 'nightly', not to 'default'"
    assert act(JOB, None, theirs, made=()) == refused(theirs, words)
    nobodys = job_pod(JOB, running(), labels={"app.kubernetes.io/managed-by": "nightly"})
    assert act(JOB, None, nobodys, made=()) == refused(nobodys, "is not one of the engine's")


# Strangers with our labels


STRANGER = job_pod(JOB, running(), attempt=7, uid="uid-7")


def test_a_strangers_pod_beside_a_running_one_changes_nothing() -> None:
    """Forged labels make the engine neither delete it, nor wait for it, nor lose its own."""
    known = replace(record(attempt()), state=State.RUNNING)
    assert act(JOB, known, RUNS, STRANGER, made=()) == act(JOB, known, RUNS)
    over = job_pod(JOB, ended(0), phase="Succeeded")
    assert written(JOB, known, over, STRANGER, made=()) == written(JOB, known, over)
    assert act(JOB, finished(), over, STRANGER, made=()) == Done()


def test_a_strangers_pod_is_not_waited_for_between_two_attempts() -> None:
    closed = record(attempt(outcome=Reason.IMAGE_PULL_FAILED, finished_at=at(-1)))
    assert act(JOB, closed, STRANGER, made=()) == CreatePod(2, {})
    other = job_pod(JOB, running(), run="ffffffff", uid="uid-7")
    assert act(JOB, closed, other, made=()) == CreatePod(2, {})


def test_what_looks_like_a_strangers_may_be_in_a_newer_record() -> None:
    closed = record(attempt(outcome=Reason.EVICTED, finished_at=at(-300)))
    name = STRANGER["metadata"]["name"]
    assert act(JOB, closed, STRANGER, made=(), asked={}) == RefreshPod(name, "uid-7")


def test_a_stranger_in_the_place_of_the_next_attempt_is_refused_as_well() -> None:
    closed = record(attempt(outcome=Reason.EVICTED, finished_at=at(-300)))
    second = job_pod(JOB, running(), attempt=2, uid="uid-2")
    assert act(JOB, closed, second, made=()) == refused(second)


# What a watch says


def test_the_pod_before_is_asked_for_where_only_a_watch_says_that_it_is_gone() -> None:
    """It says so, too, of one whose labels somebody changed."""
    for reason in (Reason.IMAGE_PULL_FAILED, Reason.START_TIMEOUT, Reason.EVICTED):
        closed = record(attempt(outcome=reason, finished_at=at(-300)))
        action = act(JOB, closed, gone=())
        assert (action.pod, action.uid) == (POD, UID)  # type: ignore[union-attr]
    over = record(attempt(outcome=Reason.SCRIPT_FAILED, finished_at=at(-300)))
    assert act(JOB, over, gone=()) == CreatePod(2, {})


def test_the_pod_of_a_run_before_is_still_known_after_a_rerun() -> None:
    """Its attempts are in the record no more, and the pod may not have ended."""
    again = replace(finished(Reason.IMAGE_PULL_FAILED).next_run(JOB.spec_hash), version="9")
    stuck = job_pod(JOB, waiting("ErrImagePull", "x"), phase="Pending")
    assert act(JOB, again, stuck, made=()) == DeletePod(POD, UID, 0, "its attempt is over")
    assert act(JOB, again, gone=[UID]) == CreatePod(2, {})
    assert not isinstance(act(JOB, again), CreatePod)


def test_a_pod_that_lost_its_gate_after_the_record_was_read_is_read_again() -> None:
    """Another engine recorded it before it removed the gate: a moment ago there was no record."""
    state = make_state(JOB, None, RUNS, made=())
    state.observed.read_ungated.clear()
    assert decide(state) == RefreshPod(POD, UID)
    over = make_state(JOB, None, job_pod(JOB, ended(0), phase="Succeeded"), made=())
    over.observed.read_ungated.clear()
    assert decide(over) == RefreshPod(POD, UID)


def test_the_end_of_a_pod_that_is_in_no_record_is_not_taken_for_the_jobs_own() -> None:
    over = job_pod(JOB, ended(0), phase="Succeeded", deleted="2026-01-01T12:00:30Z")
    assert act(JOB, None, over, made=()) == Wait()
