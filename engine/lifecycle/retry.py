"""Whether and when a job is tried again after an attempt that failed, and how that is said."""

from datetime import datetime, timedelta
from zlib import crc32

from msgspec.structs import replace

from engine.api.model import Job
from engine.durations import format_duration
from engine.lifecycle.record import Attempt, Record
from engine.status.outcome import Outcome, Reason
from engine.status.waiting import is_rate_limited

FIRST_DELAY, LONGEST_DELAY = 5.0, 300.0
RATE_LIMITED_DELAY = 30.0
"""The first delay where a registry answers 429."""
JITTER = 0.2


def retry_time(attempt: Attempt, end: datetime, count: int) -> datetime:
    """When to try again after the failure number `count` of its kind: later every time.

    The pod's name decides the jitter, so that jobs which failed together don't start together.
    """
    is_limited = any(is_rate_limited(failure.message) for failure in attempt.failures)
    first = RATE_LIMITED_DELAY if is_limited else FIRST_DELAY
    share = crc32(attempt.pod.encode()) / 2**32
    seconds = min(LONGEST_DELAY, first * 2 ** (count - 1)) * (1 + JITTER * share)
    return end + timedelta(seconds=seconds)


def close_or_retry(
    record: Record, job: Job, attempt: Attempt, outcome: Outcome, end: datetime
) -> Record:
    """`record` with `attempt` closed: the run's end, unless the job's `retry` has another one.

    A fallback to another pull policy costs no retry.
    """
    counted = job.retry.on - {Reason.IMAGE_PULL_FAILED}
    used = sum(one.exhausted or one.outcome in counted for one in record.attempts)
    left = job.retry.max - used if outcome.reason in job.retry.on else 0
    if left <= 0:
        return record.with_attempt_closed(attempt, outcome, end)
    at = retry_time(attempt, end, used + 1)
    closed = replace(attempt, retry_at=at, exhausted=bool(attempt.failures))
    after = record.with_attempt_closed(closed, outcome, end, again=True)
    made, words = len(after.attempts), outcome.message or outcome.reason
    return replace(after, message=f"attempt {made} of {made + left} failed: {words}")


def time_left(record: Record, now: datetime) -> str:
    """How long a registry or the next try is waited for; it belongs behind the message."""
    last = record.last
    if record.state.is_final or last is None:
        return ""
    at, words = (last.gives_up_at, "gives up") if last.is_open else (last.retry_at, "next")
    if at is None:
        return ""
    seconds = max(0, int((at - now).total_seconds()))
    return f"; {words} in {format_duration(seconds)}"
