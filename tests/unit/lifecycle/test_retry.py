from typing import Any

import pytest

from engine.api.model import Job
from engine.lifecycle.actions import CreatePod, DeletePod, Wait
from engine.lifecycle.record import Record
from engine.lifecycle.retry import time_left
from engine.lifecycle.state import name_of
from engine.status.outcome import Outcome, Reason, State
from tests.unit.builders import make_job
from tests.unit.lifecycle.states import act, at, attempt, record, written
from tests.unit.pods import UID, ended, job_pod, running, waiting

PENDING: dict[str, Any] = {"phase": "Pending"}


def evicted(job: Job, number: int = 1) -> dict[str, Any]:
    return job_pod(
        job, attempt=number, uid=f"uid-{number}", phase="Failed", reason="Evicted", message="low"
    )


def after(job: Job, *pods: dict[str, Any]) -> Record:
    """The record after attempts that ended as these pods did."""
    known = record(job=job)
    for number, pod in enumerate(pods, 1):
        uid = pod["metadata"]["uid"]
        known = known.with_attempt(attempt(number, uid=uid, job=job))
        known = written(job, known, pod)
    return known


def test_without_a_word_about_it_nothing_is_retried() -> None:
    job = make_job()
    assert after(job, evicted(job)).state is State.FAILED


def test_an_eviction_is_retried_as_often_as_the_spec_says() -> None:
    job = make_job(retry={"max": 2})
    assert after(job, evicted(job)).state is State.STARTING
    assert after(job, evicted(job), evicted(job, 2)).state is State.STARTING
    over = after(job, evicted(job), evicted(job, 2), evicted(job, 3))
    assert (over.state, over.reason) == (State.FAILED, Reason.EVICTED)
    assert [a.outcome for a in over.attempts] == [Reason.EVICTED] * 3


def test_a_retry_waits_longer_every_time() -> None:
    job = make_job(retry={"max": 5})
    for number in (1, 2, 3):
        known = after(job, *(evicted(job, n) for n in range(1, number + 1)))
        due = known.attempts[-1].retry_at
        assert due is not None
        least = 5 * 2 ** (number - 1)
        assert at(least) <= due <= at(1.2 * least)
        assert act(job, known) == Wait(due)
        assert act(job, known, now=due) == CreatePod(number + 1, {})


def test_only_the_named_reasons_are_retried() -> None:
    job = make_job(retry={"max": 3, "on": ["OOMKilled"]})
    assert after(job, evicted(job)).state is State.FAILED
    oom = job_pod(job, ended(137, "OOMKilled"), uid="uid-1", phase="Failed")
    assert after(job, oom).state is State.STARTING


def test_a_deleted_pod_is_started_again_only_if_the_spec_says_so() -> None:
    job = make_job(retry={"max": 1, "on": ["PodDeleted"]})
    known = written(job, record(attempt(job=job), job=job), gone=[UID])
    assert known.state is State.STARTING
    assert known.attempts[0].message == f'pods "build-{job.run}-1" not found'


def test_no_reasons_means_no_retry() -> None:
    job = make_job(retry={"max": 3, "on": []})
    assert after(job, evicted(job)).state is State.FAILED


def pull_failure(job: Job, number: int) -> dict[str, Any]:
    state = waiting("ErrImagePull", "connection refused")
    return job_pod(job, state, attempt=number, uid=f"uid-{number}", **PENDING)


def test_falling_back_costs_no_retry_and_no_wait() -> None:
    job = make_job(pullPolicy=["Always", "Never"], retry={"max": 1})
    begun = act(job, after(job, pull_failure(job, 1)))
    assert begun == CreatePod(2, {"main": "Never"}, ("main:1",))
    known = after(job, pull_failure(job, 1), evicted(job, 2))
    assert act(job, known, now=at(6)) == CreatePod(3, {"main": "Never"}, ("main:1",))


def test_the_wait_before_a_retry_has_an_end() -> None:
    job = make_job(retry={"max": 10})
    known = after(job, *(evicted(job, number) for number in range(1, 10)))
    due = known.attempts[-1].retry_at
    assert due is not None
    assert at(300) <= due <= at(360)


def test_a_pod_on_a_lost_node_holds_its_retry_up_until_its_kubelet_would_have_ended_it() -> None:
    """A taint drives pods from nodes that are there, too: two at once would run for its grace."""
    job = make_job(retry={"max": 1})
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager"}
    lost = job_pod(
        job, running(), uid="uid-1", deleted="2026-01-01T12:00:50Z", conditions=[condition]
    )
    known = after(job, lost)
    assert act(job, known, lost, now=at(39)) == Wait(at(40))
    assert act(job, known, now=at(39), gone=["uid-1"]) == CreatePod(2, {})
    assert act(job, known, lost, now=at(40)) == CreatePod(2, {})


def test_a_pod_of_a_lost_node_that_nobody_deletes_goes_before_its_retry() -> None:
    job = make_job(retry={"max": 1})
    lost = attempt(1, uid="uid-1", job=job)
    known = record(lost, job=job).with_attempt_closed(
        lost, Outcome(Reason.NODE_LOST, "gone"), at(0), again=True
    )
    back = job_pod(job, running(), uid="uid-1")
    assert act(job, known, back, now=at(60)) == DeletePod(
        name_of(back), "uid-1", None, "its attempt is over"
    )


ENDS: dict[str, dict[str, Any]] = {
    "Evicted": {"phase": "Failed", "reason": "Evicted"},
    "NodeLost": {"phase": "Failed", "reason": "NodeLost"},
    "Preempted": {"phase": "Failed", "reason": "Preempting"},
    "ScriptFailed": {"main": ended(1)},
    "OOMKilled": {"main": ended(137, "OOMKilled")},
    "ImagePullFailed": {"main": waiting("ErrImagePull", "not found"), **PENDING},
}


@pytest.mark.parametrize("reason", ENDS)
def test_max_alone_retries_every_reason_that_another_try_can_mend(reason: str) -> None:
    job = make_job(retry={"max": 2})
    pod = job_pod(job, uid="uid-1", **ENDS[reason])
    known = after(job, pod)
    assert [(a.outcome, a.number) for a in known.attempts] == [(reason, 1)]
    assert known.state is State.STARTING


def test_a_start_that_took_too_long_is_retried_too() -> None:
    job = make_job(retry={"max": 1})
    known = record(attempt(1, uid="uid-1", job=job), job=job)
    late = job_pod(job, waiting("ContainerCreating"), uid="uid-1", **PENDING)
    known = written(job, known, late, now=at(600))
    assert [a.outcome for a in known.attempts] == [Reason.START_TIMEOUT]
    assert known.state is State.STARTING


@pytest.mark.parametrize(
    "pod",
    [{"phase": "Failed", "reason": "DeadlineExceeded"}, {"main": waiting("InvalidImageName")}],
)
def test_what_another_try_would_only_repeat_is_not_retried_unless_it_is_named(
    pod: dict[str, Any],
) -> None:
    job = make_job(retry={"max": 2})
    assert after(job, job_pod(job, uid="uid-1", **pod)).state is State.FAILED


def test_the_message_counts_the_attempts_and_says_when_the_next_one_comes() -> None:
    job = make_job(retry={"max": 2})
    failed = [job_pod(job, ended(1), attempt=n, uid=f"uid-{n}") for n in (1, 2, 3)]
    once = after(job, failed[0])
    assert once.message == "attempt 1 of 3 failed: exit code 1"
    assert time_left(once, at(10)) == "; next in 5s"
    assert after(job, *failed[:2]).message == "attempt 2 of 3 failed: exit code 1"
    over = after(job, *failed)
    assert (over.message, time_left(over, at(0))) == ("exit code 1", "")
