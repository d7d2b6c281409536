"""The mark on a record whose spec is gone from its source: the record ages from then on.

A reconcile that has read the whole source sets the mark, and the next one that finds the spec takes
it out. A record without a mark never ages.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from engine.lifecycle.record import Record
from engine.times import parse_time
from engine.wellknown import ORPHANED_SINCE


def orphaned_since(annotations: Mapping[str, str]) -> datetime | None:
    """When the spec was missed; None without a mark, and for a mark that can't be read."""
    try:
        return parse_time(annotations.get(ORPHANED_SINCE))
    except (ValueError, OverflowError):
        return None


def mark_orphaned(record: Record, now: datetime) -> Record | None:
    """`record` with the mark; None if it has one, or an attempt of its job is under way."""
    if record.open_attempt is not None or orphaned_since(record.annotations) is not None:
        return None
    mark = {ORPHANED_SINCE: f"{now:%Y-%m-%dT%H:%M:%SZ}"}
    return replace(record, annotations={**record.annotations, **mark})
