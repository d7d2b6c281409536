"""Labels and names prove nothing: whose a pod is says the record, or a dry run."""

from dataclasses import replace

import pytest

from engine.decide.actions import (
    AdoptPod,
    CreateDependents,
    CreatePod,
    DeletePod,
    Done,
    RefreshPod,
    RejectForeign,
    Wait,
)
from engine.decide.rules.resolve_unrecorded import NEVER_RAN
from engine.status.outcome import Reason, State
from tests.unit.builders import make_job
from tests.unit.decide.situations import (
    JOB,
    NOW,
    act,
    at,
    attempt,
    finished,
    quota,
    record,
    written,
)
from tests.unit.pods import UID, ended, job_pod, running, waiting

POD = f"build-{JOB.run}-1"
GATED = job_pod(JOB, gated=True)
RUNS = job_pod(JOB, running())
YOUNG = at(-18)
REMOVE = "remove it, or rename the job"


# Gated: it never ran


def test_a_gated_pod_in_no_record_gets_no_secret_and_is_not_let_go() -> None:
    """The record is written first, so that whoever made the pod can't record it any more."""
    claimed = written(JOB, None, GATED, made=())
    assert (claimed.state, claimed.attempts, claimed.queued_at) == (State.QUEUED, (), NOW)
    assert claimed.discarded == UID
    stored = replace(claimed, version="8")
    assert act(JOB, stored, GATED, made=()) == DeletePod(POD, UID, 0, NEVER_RAN)
    assert act(JOB, stored) == CreatePod(1, {})


def test_an_engine_that_made_the_pod_knows_when_it_was_given_up() -> None:
    """The record is another than the one that it made the pod by."""
    given_up = replace(written(JOB, None, GATED, made=()), version="8")
    assert act(JOB, None, GATED) == CreateDependents(1, POD, UID, {})
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


def test_a_gated_pod_of_another_source_is_refused_by_name() -> None:
    theirs = job_pod(JOB, gated=True, labels={"jobs.engine/source": "nightly"})
    words = f"pod {POD} belongs to source 'nightly', not to 'default'"
    assert act(JOB, None, theirs, made=()) == RejectForeign(words)


def test_a_gated_pod_that_can_not_go_is_refused_by_name() -> None:
    held = job_pod(JOB, gated=True, deleted="2026-01-01T12:00:15Z")
    assert act(JOB, None, held, made=()) == Wait()
    held["metadata"]["finalizers"] = ["example.com/held"]
    words = f"pod {POD} is in no record of this job, and a finalizer keeps it there"
    assert act(JOB, None, held, made=()) == RejectForeign(words, REMOVE)


# Not gated: adopted if it is what would be created


def test_a_running_pod_in_no_record_is_compared_with_a_dry_run() -> None:
    assert act(JOB, None, RUNS, made=()) == AdoptPod(1, POD, UID, {})


def test_an_adopted_pod_is_recorded_and_gets_nothing() -> None:
    """Somebody deleted the record: pods still tell how many attempts there were."""
    runs = job_pod(JOB, running(), attempt=2, uid="uid-2")
    made = written(JOB, None, runs, made=(), adopted=["uid-2"])
    assert [(a.number, a.uid) for a in made.attempts] == [(2, "uid-2")]
    assert made.next_number == 2


def test_of_several_pods_without_a_record_the_latest_attempt_counts() -> None:
    first = job_pod(JOB, ended(1), phase="Failed")
    second = job_pod(JOB, ended(0), attempt=2, uid="uid-2", phase="Succeeded")
    assert act(JOB, None, first, second, made=()) == AdoptPod(2, f"build-{JOB.run}-2", "uid-2", {})
    made = written(JOB, None, first, second, made=(), adopted=["uid-2"])
    assert [a.number for a in made.attempts] == [2]


def test_the_comparison_allows_every_policy_that_the_attempt_may_have_come_to() -> None:
    job = make_job(pullPolicy=["Always", "Never"])
    for policy, expected in (("Never", "Never"), ("IfNotPresent", "Always")):
        pod = job_pod(job, running(), policies={"main": policy})
        action = act(job, None, pod, made=())
        assert isinstance(action, AdoptPod)
        assert action.policies == {"main": expected}


def test_a_comparison_that_a_quota_refused_is_tried_again_later() -> None:
    refused = quota()
    assert act(JOB, None, RUNS, made=(), rejection=refused) == Wait(at(5))
    assert isinstance(act(JOB, None, RUNS, made=(), rejection=refused, now=at(5)), AdoptPod)


def test_a_running_pod_of_another_run_in_no_record_is_refused_by_name() -> None:
    old = job_pod(JOB, running(), run="ffffffff")
    name = old["metadata"]["name"]
    words = f"pod {name} is of another run of this job, and in no record of it"
    assert act(JOB, None, old, made=()) == RejectForeign(words, "wait for its end, or remove it")
    over = job_pod(JOB, ended(0), run="ffffffff", phase="Succeeded")
    assert act(JOB, None, over, made=()) == CreatePod(1, {})


@pytest.mark.parametrize(
    "label", ["app.kubernetes.io/managed-by", "jobs.engine/source"], ids=["nobody", "source"]
)
def test_a_running_pod_that_says_it_is_anothers_is_refused_by_name(label: str) -> None:
    theirs = job_pod(JOB, running(), labels={label: "nightly"})
    action = act(JOB, None, theirs, made=())
    assert isinstance(action, RejectForeign)
    assert action.message.startswith(f"pod {POD} ")


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


def test_a_stranger_in_the_place_of_the_next_attempt_is_compared_as_well() -> None:
    closed = record(attempt(outcome=Reason.EVICTED, finished_at=at(-300)))
    second = job_pod(JOB, running(), attempt=2, uid="uid-2")
    assert isinstance(act(JOB, closed, second, made=()), AdoptPod)


# What a watch says


def test_the_pod_before_is_asked_for_where_only_a_watch_says_that_it_is_gone() -> None:
    """It says so, too, of one whose labels somebody changed."""
    for reason in (Reason.IMAGE_PULL_FAILED, Reason.START_TIMEOUT):
        closed = record(attempt(outcome=reason, finished_at=at(-300)))
        action = act(JOB, closed, gone=())
        assert (action.pod, action.uid) == (POD, UID)  # type: ignore[union-attr]
    over = record(attempt(outcome=Reason.EVICTED, finished_at=at(-300)))
    assert act(JOB, over, gone=()) == CreatePod(2, {})


def test_the_pod_of_a_run_before_is_still_known_after_a_rerun() -> None:
    """Its attempts are in the record no more, and the pod may not have ended."""
    again = replace(finished(Reason.IMAGE_PULL_FAILED).next_run(JOB.spec_hash), version="9")
    stuck = job_pod(JOB, waiting("ErrImagePull", "x"), phase="Pending")
    assert act(JOB, again, stuck, made=()) == DeletePod(POD, UID, 0, "its attempt is over")
    assert act(JOB, again, gone=[UID]) == CreatePod(2, {})
    assert not isinstance(act(JOB, again), CreatePod)
