"""A record whose spec is gone from its source carries that as a mark, and ages from then on.

The mark is an annotation, made by a reconcile that has read all of the source, and taken out by the
next one that finds the spec. Nothing else ages a record: not its own age, nor an engine's absence.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from engine.decide.record import Record
from engine.times import LATEST
from engine.wellknown import BACK_SINCE, GONE_SINCE

_QUIET = timedelta(days=1)
"""Two folders that share a source miss each other's specs in turn: they write no more often."""
_NEVER = datetime.min.replace(tzinfo=UTC)


def gone_since(annotations: Mapping[str, str]) -> datetime | None:
    """When the spec was missed; None if it never was, or if that can't be read."""
    return _time(annotations.get(GONE_SINCE, ""))


def mark_gone(record: Record, now: datetime) -> Record | None:
    """`record` of a job without a spec, with its mark; None if there is nothing to be written.

    Only a run that is over is marked, and one that nobody has been heard of for a day: it waits
    for a quota, say, and nobody will start it any more.
    """
    if gone_since(record.annotations) is not None:
        return None
    back = _time(record.annotations.get(BACK_SINCE, ""))
    at_rest = record.state.is_final or now - _last_heard_of(record) > _QUIET
    if not at_rest or (back is not None and now - back < _QUIET):
        return None
    return _with_mark(record, GONE_SINCE, now)


def mark_back(record: Record, now: datetime) -> Record:
    """`record` of a job that has a spec again."""
    return _with_mark(record, BACK_SINCE, now)


def _with_mark(record: Record, name: str, now: datetime) -> Record:
    others = {k: v for k, v in record.annotations.items() if k not in (GONE_SINCE, BACK_SINCE)}
    return replace(record, annotations={**others, name: f"{now:%Y-%m-%dT%H:%M:%SZ}"})


def _last_heard_of(record: Record) -> datetime:
    attempts = (t for a in record.attempts for t in (a.claimed_at, a.started_at, a.finished_at))
    times = (record.queued_at, record.started_at, *attempts)
    return max((time for time in times if time is not None), default=_NEVER)


def _time(text: str) -> datetime | None:
    try:
        time = datetime.fromisoformat(text)
        return min(time.astimezone(UTC), LATEST) if time.tzinfo is not None else None
    except (ValueError, OverflowError):
        return None
