"""Which pod somebody means who asks for the log of a job."""

from dataclasses import dataclass

from engine.decide.record import Record
from engine.errors import UsageError
from engine.refs import pod_name


@dataclass(frozen=True, slots=True)
class LogTarget:
    """The pod of one attempt; a name alone proves nothing."""

    number: int
    """The attempt's number."""
    pod: str
    """The pod's name."""
    uid: str
    """The pod's UID; "" if it was never created, or 0.1 recorded the attempt."""


def log_target(
    record: Record, number: int | None = None, *, previous: bool = False
) -> LogTarget | None:
    """The newest attempt, or the one of this number; with `previous` the one before it.

    Before the run's first attempt comes the last one of the run before. None if there was none yet.
    Errors: UsageError for an attempt that isn't in the record.
    """
    before = [
        LogTarget(run.last_number, pod_name(record.key.name, run.run, run.last_number), run.uid)
        for run in reversed(record.history)
        if run.last_number
    ]
    attempts = [LogTarget(a.number, a.pod, a.uid) for a in record.attempts]
    known = [*before, *attempts]
    at = len(known) - 1 if attempts else len(known)
    if number is not None:
        numbers = [attempt.number for attempt in attempts]
        if number not in numbers:
            there = f"this run has {', '.join(map(str, numbers))}" if numbers else "there is none"
            raise UsageError(f"no attempt {number}: {there}", where=str(record.key))
        at = len(before) + numbers.index(number)
    if previous:
        at -= 1
        if at < 0:
            raise UsageError("there is no attempt before this one", where=str(record.key))
    return known[at] if at < len(known) else None
