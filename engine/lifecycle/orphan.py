"""The mark on a record whose spec is gone from its source: the record ages from then on.

A reconcile that has read the whole source sets the mark, and the next one that finds the spec takes
it out. A record without a mark never ages.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from msgspec.structs import replace

from engine.lifecycle.record import Record
from engine.times import parse_time
from engine.wellknown import ORPHANED_ON, ORPHANED_SINCE

_DAY = timedelta(days=1)
_MAX_DAYS = 400
"""In one selector, which is part of a URL."""


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


def orphaned_on(annotations: Mapping[str, str]) -> dict[str, str]:
    """The label of a record with the mark."""
    since = orphaned_since(annotations)
    return {ORPHANED_ON: f"{since.astimezone(UTC):%Y-%m-%d}"} if since is not None else {}


def living_or_due(now: datetime, ttl: float | None) -> str:
    """Selects the records without a mark, and those whose time may be over by now.

    `ttl` is `records.ttl` in seconds; None is for ever.
    """
    if ttl is None:
        return f"!{ORPHANED_ON}"
    today = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    days = (today - number * _DAY for number in range(_MAX_DAYS))
    kept = [f"{day:%Y-%m-%d}" for day in days if (now - day).total_seconds() < ttl]
    return f"{ORPHANED_ON} notin ({','.join(kept)})" if kept else ""
