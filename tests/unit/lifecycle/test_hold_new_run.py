"""A job that `limits.maxStarts` suspends begins nothing, and what runs of it is seen through."""

from msgspec.structs import replace

from engine.lifecycle.actions import Action, DeletePod, Done, RefreshPod, Wait, WriteRecord
from engine.lifecycle.record import Record
from engine.lifecycle.rules import decide
from engine.status.outcome import Reason, State
from tests.unit.builders import make_job
from tests.unit.lifecycle.states import JOB, NOW, act, at, attempt, finished, make_state, record
from tests.unit.pods import UID, ended, job_pod, running

SHORT = make_job(script="other", timeout="10s")


def suspended(known: Record | None, *pods: dict[str, object]) -> Action:
    state = make_state(SHORT, known, *pods)
    state.observed.suspended = True
    return decide(state)


def test_nothing_of_a_new_run_begins_and_the_old_one_is_not_replaced() -> None:
    pod = job_pod(JOB, running(), phase="Running")
    pod["spec"]["activeDeadlineSeconds"] = 3600
    for known, pods in ((None, ()), (finished(), ()), (record(attempt()), (pod,))):
        assert isinstance(suspended(known, *pods), Wait)


def test_a_suspended_job_does_not_run_past_the_timeout_that_the_engine_keeps() -> None:
    pod = job_pod(JOB, running(), phase="Running")
    pod["status"]["startTime"] = "2026-01-01T12:00:05Z"
    closed = suspended(record(attempt()), pod)
    assert isinstance(closed, WriteRecord)
    assert closed.record.reason is Reason.DEADLINE_EXCEEDED
    gone = suspended(closed.record, pod)
    assert isinstance(gone, DeletePod)
    pod["status"]["startTime"] = "2026-01-01T12:00:15Z"
    assert suspended(record(attempt()), pod) == Wait(at(5))
    assert at(0) == NOW


def test_the_outcome_of_a_suspended_jobs_old_run_is_not_lost() -> None:
    pod = job_pod(JOB, ended(3), phase="Failed")
    closed = suspended(record(attempt()), pod)
    assert isinstance(closed, WriteRecord)
    assert (closed.record.reason, closed.record.exit_code) == (Reason.SCRIPT_FAILED, 3)


def test_a_job_that_is_yet_to_be_counted_keeps_the_retry_of_its_own_run() -> None:
    """When it is counted, its run turns out to be no new one, and its end is judged as usual."""
    pod = job_pod(SHORT, ended(3), phase="Failed")
    assert isinstance(suspended(record(attempt(job=SHORT), job=SHORT), pod), Wait)


def test_the_record_of_a_suspended_job_no_longer_says_what_refused_it_before() -> None:
    """`spec.suspend` of a job that waits for a quota."""
    job = make_job(suspend=True)
    waiting = replace(record(), state=State.QUEUED, reason=Reason.QUOTA_EXCEEDED, message="full")
    waiting = replace(waiting, refused="QuotaExceeded quota", queued_at=NOW)
    written = decide(make_state(job, waiting))
    assert isinstance(written, WriteRecord)
    after = written.record
    assert (after.state, after.reason, after.refused) == (State.QUEUED, None, "")
    assert after.message == "spec.suspend is true"
    assert isinstance(decide(make_state(job, after)), Wait)


def test_what_a_suspended_job_has_left_is_asked_for_before_anything_is_concluded() -> None:
    gone = suspended(record(attempt()))
    assert gone == RefreshPod(f"build-{JOB.run}-1", UID)
    pod = job_pod(JOB, running(), phase="Running")
    pod["status"]["startTime"] = "2026-01-01T12:00:05Z"
    state = make_state(SHORT, record(attempt()), pod, asked={})
    state.observed.suspended = True
    assert decide(state) == gone


def test_a_job_that_is_suspended_by_its_spec_goes_on_with_an_attempt_that_is_under_way() -> None:
    job = make_job(suspend=True)
    begun = record(attempt(job=job), job=job)
    closed = act(job, begun, job_pod(job, ended(0), phase="Succeeded"))
    assert isinstance(closed, WriteRecord)
    assert closed.record.reason is Reason.SUCCEEDED
    assert isinstance(act(job, record(job=job, message="spec.suspend is true")), Wait)


def test_a_suspended_job_that_was_completed_is_over() -> None:
    job = make_job(suspend=True)
    assert act(job, replace(finished(job=job), attempts=(), completed=True)) == Done()


def test_an_object_that_is_invalid_by_now_begins_nothing() -> None:
    state = make_state(JOB)
    state.observed.refused = True
    assert isinstance(decide(state), Wait)
