"""A record that can't be written refuses the job; what was made for the attempt goes."""

import pytest
from msgspec.structs import replace

from engine.errors import AdmissionRefusedError, ApiError, ForbiddenError, QuotaExceededError
from engine.lifecycle.actions import (
    CreateDependents,
    CreatePod,
    DeletePod,
    Done,
    RefreshPod,
    RemoveSchedulingGate,
    ReportError,
    Wait,
)
from engine.status.outcome import Reason, State
from tests.unit.lifecycle.states import (
    JOB,
    act,
    at,
    attempt,
    finished,
    record,
    refused_record,
    report,
    written,
)
from tests.unit.pods import UID, ended, job_pod, running

POD = f"build-{JOB.run}-1"
KINDS = QUOTA, ADMISSION, RIGHTS = (
    QuotaExceededError,
    AdmissionRefusedError,
    ForbiddenError,
)
FINAL = (ADMISSION, RIGHTS)


@pytest.mark.parametrize("kind", KINDS)
def test_the_pod_that_could_not_be_recorded_goes(kind: type[ApiError]) -> None:
    gated, refused = job_pod(JOB, gated=True), refused_record(kind)
    removal = act(JOB, None, gated, settled=[UID], rejection=refused)
    assert removal == DeletePod(POD, UID, 0, "exceeded quota: c")


def test_a_pod_whose_secret_was_refused_as_well_gets_none() -> None:
    """The record could not say that admission refused it, so nobody asks for the Secret again."""
    gated, refused = job_pod(JOB, gated=True), refused_record(ADMISSION)
    assert act(JOB, None, gated, rejection=refused) == DeletePod(POD, UID, 0, "exceeded quota: c")


@pytest.mark.parametrize("ready", [(), (UID,)])
def test_a_recorded_pod_whose_refusal_cant_be_recorded_waits_its_turn(ready: tuple[str]) -> None:
    """What it owns, or the removal of its gate, was refused, and then the record that says so."""
    gated, refused = job_pod(JOB, gated=True), refused_record(RIGHTS, version="7")
    known = record(attempt())
    assert act(JOB, known, gated, settled=ready, rejection=refused) == report(refused)
    again = act(JOB, known, gated, settled=ready, rejection=refused, now=at(5))
    assert isinstance(again, RemoveSchedulingGate if ready else CreateDependents)


def test_the_record_is_read_once_more_before_the_pod_goes() -> None:
    """The reply to an earlier write may have been lost."""
    gated = job_pod(JOB, gated=True)
    refused = refused_record()
    action = act(JOB, None, gated, settled=[UID], rejection=refused, asked={})
    assert action == RefreshPod(POD, UID)
    recorded = replace(record(attempt()), version="8")
    action = act(JOB, recorded, gated, settled=[UID], rejection=refused)
    assert action == RemoveSchedulingGate(POD, UID, 0, 1)


def test_a_quota_queues_a_job_that_has_no_record() -> None:
    action = act(JOB, None, rejection=refused_record())
    assert isinstance(action, Wait)
    assert action.until == at(5)
    queued = action.unrecorded
    assert queued is not None
    assert (queued.state, queued.reason) == (State.QUEUED, Reason.QUOTA_EXCEEDED)
    assert (queued.message, queued.attempts) == ("exceeded quota: c", ())


@pytest.mark.parametrize("kind", FINAL)
def test_what_a_webhook_or_a_missing_right_refuses_is_told_with_nothing_left(
    kind: type[ApiError],
) -> None:
    refused = refused_record(kind)
    assert act(JOB, None, rejection=refused) == report(refused)


@pytest.mark.parametrize("kind", KINDS)
def test_the_next_try_writes_the_record_before_it_makes_a_pod(kind: type[ApiError]) -> None:
    refused = refused_record(kind)
    first = written(JOB, None, rejection=refused, now=at(5))
    assert (first.state, first.attempts, first.message) == (State.QUEUED, (), "exceeded quota: c")
    there = replace(first, version="8")
    assert act(JOB, there, rejection=refused, now=at(5)) == CreatePod(1, {})


@pytest.mark.parametrize("kind", FINAL)
def test_a_record_that_can_be_made_and_not_changed_waits_its_turn_as_well(
    kind: type[ApiError],
) -> None:
    refused = refused_record(kind, version="7", message="no")
    queued = replace(record(), state=State.QUEUED, message="no", refused=refused.key)
    assert act(JOB, queued, rejection=refused) == report(refused)
    assert act(JOB, queued, rejection=refused, now=at(5)) == CreatePod(1, {})


def test_a_new_run_is_refused_and_the_record_of_the_last_one_stays() -> None:
    old = replace(JOB, spec_hash="0" * 64)
    done = attempt(job=old, uid="uid-0", outcome=Reason.SUCCEEDED, exit_code=0)
    before = replace(finished(job=old), attempts=(done,))
    gated, refused = job_pod(JOB, gated=True), refused_record(RIGHTS, version="7")
    removal = act(JOB, before, gated, settled=[UID], rejection=refused)
    assert removal == DeletePod(POD, UID, 0, "exceeded quota: c")
    assert act(JOB, before, rejection=refused) == report(refused)
    first = written(JOB, before, rejection=refused, now=at(5))
    assert (first.run, len(first.history)) == (JOB.run, 1)


def test_a_refusal_is_forgotten_once_somebody_has_written_the_record() -> None:
    queued = replace(record(), state=State.QUEUED, version="8")
    assert act(JOB, queued, rejection=refused_record(version="7")) == CreatePod(1, {})
    assert act(JOB, finished(), rejection=refused_record(version="6")) == Done()


@pytest.mark.parametrize("kind", KINDS)
def test_what_runs_is_left_alone_and_its_end_is_not_told_as_queued(kind: type[ApiError]) -> None:
    refused = refused_record(kind, version="7")
    started = replace(record(attempt()), state=State.RUNNING)
    assert act(JOB, started, job_pod(JOB, running()), rejection=refused) == Wait(at(5))
    over = job_pod(JOB, ended(0), phase="Succeeded")
    assert act(JOB, started, over, rejection=refused) == report(refused)
    closed = written(JOB, started, over, rejection=refused, now=at(5))
    assert closed.state is State.SUCCEEDED


def test_a_gated_pod_of_nobody_waits_for_its_record_too() -> None:
    """Only a record that is written keeps another engine from letting it go."""
    gated = job_pod(JOB, gated=True)
    action = act(JOB, None, gated, made=(), rejection=refused_record())
    assert isinstance(action, Wait)
    assert action.unrecorded is not None
    given_up = written(JOB, None, gated, made=(), rejection=refused_record(), now=at(5))
    assert given_up.discarded == UID


def test_a_job_of_another_source_is_not_asked_to_wait() -> None:
    other = replace(record(), source="nightly")
    assert isinstance(act(JOB, other, rejection=refused_record(version="7")), ReportError)


def test_a_pod_that_lacks_a_secret_for_want_of_a_right_goes_and_the_right_is_told() -> None:
    gated = job_pod(JOB, gated=True)
    refused = replace(refused_record(RIGHTS, message="cannot create"), record_version=None, uid=UID)
    removal = act(JOB, None, gated, rejection=refused)
    assert removal == DeletePod(POD, UID, 0, "cannot create")
    assert act(JOB, None, rejection=refused) == report(refused)
    assert act(JOB, None, rejection=refused, now=at(5)) == CreatePod(1, {})
    taken_back = written(JOB, record(attempt()), gated, rejection=refused)
    assert (taken_back.state, taken_back.reason) == (State.QUEUED, None)
    assert (taken_back.message, taken_back.attempts) == ("cannot create", ())


@pytest.mark.parametrize("kind", [QuotaExceededError, RIGHTS])
def test_the_record_is_asked_for_once_in_whatever_words_it_was_refused(
    kind: type[ApiError],
) -> None:
    refused = refused_record(kind, version="7", message="exceeded quota: q, used: pods=1")
    late = refused.retry_at
    asked = written(JOB, record(), rejection=refused, now=late)
    known = replace(asked, message="***", version="7")
    assert act(JOB, known, rejection=refused, now=late) == CreatePod(1, {})


def test_what_runs_is_left_alone_though_its_record_is_gone_and_can_not_be_written() -> None:
    action = act(JOB, None, job_pod(JOB, running()), rejection=refused_record())
    assert isinstance(action, Wait)


def test_a_gated_pod_beside_a_run_that_is_over_goes_once_the_record_may_be_written() -> None:
    gated = job_pod(JOB, gated=True, attempt=2, uid="uid-9")
    refused = refused_record(version="7")
    assert act(JOB, finished(), gated, made=(), rejection=refused) == Done()
    given_up = written(JOB, finished(), gated, made=(), rejection=refused, now=at(5))
    assert given_up.discarded == "uid-9"
