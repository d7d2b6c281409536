"""What a person may ask of a job by name: to stop it, or to run the same spec once more."""

from datetime import datetime

from engine.decide.outcomes import closed
from engine.decide.record import Record, ended
from engine.status.outcome import Outcome, Reason


def cancelled(record: Record, message: str, now: datetime) -> Record:
    """`record` ended as Cancelled; its pod, if it has one, is to be deleted afterwards."""
    outcome = Outcome(Reason.CANCELLED, message)
    attempt = record.open_attempt
    if attempt is None:
        return ended(record, outcome, now)
    return closed(record, attempt, outcome, now)


def rerun(record: Record) -> Record:
    """`record` of a new run of the same spec; its attempts go on counting."""
    return record.next_run(record.spec_hash)
