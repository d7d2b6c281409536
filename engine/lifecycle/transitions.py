"""How a record changes: an attempt is closed, a job is cancelled, completed, or run once more."""

from dataclasses import replace
from datetime import datetime

from engine.api.model import Retry
from engine.errors import QuotaExceededError
from engine.lifecycle.record import Attempt, PullFailure, Record, finished
from engine.lifecycle.state import Rejection
from engine.status.outcome import Outcome, Reason, State


def with_attempt_closed(
    record: Record,
    attempt: Attempt,
    outcome: Outcome,
    now: datetime,
    *,
    failures: tuple[PullFailure, ...] = (),
    again: bool = False,
) -> Record:
    """Record with `attempt` closed; the run ends with it unless there is to be another attempt."""
    done = replace(
        attempt,
        outcome=outcome.reason,
        message=outcome.message,
        exit_code=outcome.exit_code,
        finished_at=now,
        failures=failures,
    )
    started = record.started_at or attempt.started_at
    after = replace(record.with_attempt(done), started_at=started)
    if again:
        return replace(after, state=State.STARTING, message=outcome.message)
    return finished(after, outcome, now)


def running(record: Record, attempt: Attempt, since: datetime | None) -> Record:
    """`record` of a run whose pod runs."""
    started = replace(attempt, started_at=since)
    after = record.with_attempt(started)
    return replace(after, state=State.RUNNING, started_at=since, message="")


def queued(record: Record, rejection: Rejection, now: datetime) -> Record:
    """`record` of a run that waits for `rejection` to pass; it keeps its place in the line."""
    reason = Reason.QUOTA_EXCEEDED if rejection.kind is QuotaExceededError else None
    since, message = record.queued_at or now, rejection.message
    return replace(record, state=State.QUEUED, reason=reason, message=message, queued_at=since)


def may_retry(record: Record, outcome: Outcome, retry: Retry) -> bool:
    """Whether `retry` allows one more attempt after `outcome`; falling back costs no retry."""
    spent = sum(1 for attempt in record.attempts if attempt.outcome in retry.on)
    return outcome.reason in retry.on and spent < retry.max


def deleted_pod(attempt: Attempt) -> Outcome:
    """The pod was deleted; the message is kubectl's own for an object that isn't there."""
    return Outcome(Reason.POD_DELETED, f'pods "{attempt.pod}" not found')


def cancelled(record: Record, message: str, now: datetime) -> Record:
    """`record` ended as Cancelled; its pod, if it has one, is to be deleted afterwards."""
    outcome = Outcome(Reason.CANCELLED, message)
    attempt = record.open_attempt
    if attempt is None:
        return finished(record, outcome, now)
    return with_attempt_closed(record, attempt, outcome, now)


def rerun(record: Record) -> Record:
    """`record` of a new run of the same spec; its attempts go on counting."""
    return record.next_run(record.spec_hash, record.spec_fields)


def completed(
    record: Record, spec_hash: str, spec_fields: str, message: str, now: datetime
) -> Record:
    """A run of this revision that succeeded without an attempt, with `record` in its history."""
    is_blank = not record.state.is_final and not record.attempts
    same = record.spec_hash == spec_hash
    run = record if is_blank and same else record.next_run(spec_hash, spec_fields)
    return replace(finished(run, Outcome(Reason.SUCCEEDED, message), now), completed=True)
