"""What another source made is refused by name, never overwritten."""

from engine.decide.actions import RejectForeign
from engine.decide.situation import Situation


def refuse_foreign(situation: Situation) -> RejectForeign | None:
    """Only if the record is another's; for pods see `resolve_unrecorded`."""
    record = situation.record
    if record is None or record.source == situation.source:
        return None
    return RejectForeign(
        f"job {situation.job.key} belongs to source {record.source!r}, not to {situation.source!r}"
    )
