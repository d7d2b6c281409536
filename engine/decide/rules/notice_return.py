"""A record whose spec was missed, and is back, ages no longer."""

from engine.decide.absence import mark_back
from engine.decide.actions import MarkBack
from engine.decide.situation import Situation
from engine.wellknown import GONE_SINCE


def notice_return(situation: Situation) -> MarkBack | None:
    """Before anything else is done about the job: nobody may take its record away meanwhile."""
    record = situation.record
    if record is None or GONE_SINCE not in record.annotations:
        return None
    return MarkBack(mark_back(record, situation.now))
