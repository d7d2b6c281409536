"""When an object expires, by its annotations: ours, and those of other cleaners.

One value that can't be read keeps the object: an object is deleted only if all are understood.
"""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar

from engine.durations import FOREVER, format_duration, parse_duration
from engine.wellknown import EXPIRES_AT, TTL

_MAX_VALUE = 100

_RFC_3339 = re.compile(
    r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|[+-]\d\d:\d\d)", re.ASCII
)


@dataclass(frozen=True, slots=True)
class Ttl:
    """So long from creation; `seconds` None is for ever."""

    seconds: float | None

    def expiry(self, created: datetime) -> datetime | None:
        """When that is for an object of this age; None for never."""
        return None if self.seconds is None else created + timedelta(seconds=self.seconds)

    def describe(self, created: datetime, now: datetime) -> str:
        """In words, with how far it is."""
        age = max(0, int((now - created).total_seconds()))
        return f"ttl {_number(self.seconds or 0)}s, age {age}s"


@dataclass(frozen=True, slots=True)
class ExpiresAt:
    """At this very time."""

    at: datetime

    def expiry(self, created: datetime) -> datetime | None:
        """The same whatever the object's age."""
        del created
        return self.at

    def describe(self, created: datetime, now: datetime) -> str:
        """In words, with how far it is."""
        del created
        text = self.at.isoformat().replace("+00:00", "Z")
        passed = (now - self.at).total_seconds()
        return (
            f"expires-at {text}, {format_duration(int(passed))} ago"
            if passed > 0
            else (f"expires-at {text}")
        )


Expiry = Ttl | ExpiresAt
T = TypeVar("T")


def read_term(annotations: Mapping[str, str], foreign: Collection[str]) -> Expiry | None:
    """The term that counts; None without any.

    `forever` of our own beats everything, then `expires-at`, then our own TTL, then the longest
    that another cleaner's annotation asks for.
    Errors: ValueError, with a message for people, when any of them can't be read.
    """
    problems: list[str] = []
    own = _read(annotations, TTL, _ttl, problems)
    at = _read(annotations, EXPIRES_AT, _expires_at, problems)
    others = [_read(annotations, name, _ttl, problems) for name in foreign]
    if problems:
        raise ValueError("; ".join(problems))
    if own is not None and own.seconds is None:
        return own
    if at is not None or own is not None:
        return at or own
    return max(
        (ttl for ttl in others if ttl is not None),
        key=lambda ttl: float("inf") if ttl.seconds is None else ttl.seconds,
        default=None,
    )


def quote(text: str) -> str:
    """`text` as a message quotes it: of a long one the beginning."""
    return repr(text) if len(text) <= _MAX_VALUE else f"{text[:_MAX_VALUE]!r}…"


def _ttl(text: str) -> Ttl:
    return Ttl(None) if text.strip() == FOREVER else Ttl(parse_duration(text))


def _expires_at(text: str) -> ExpiresAt:
    if not _RFC_3339.fullmatch(text):
        raise ValueError(f"{text!r} is not an RFC 3339 time, such as 2030-01-31T18:00:00Z")
    return ExpiresAt(datetime.fromisoformat(text.upper()))


def _read(
    annotations: Mapping[str, str],
    name: str,
    parse: Callable[[str], T],
    problems: list[str],
) -> T | None:
    if name not in annotations:
        return None
    text = annotations[name]
    if len(text) > _MAX_VALUE:
        problems.append(f"{name}: {quote(text)} is too long")
        return None
    try:
        return parse(text)
    except (ValueError, OverflowError) as error:
        problems.append(f"{name}: {error}")
        return None


def _number(seconds: float) -> str:
    return str(int(seconds)) if seconds == int(seconds) else str(seconds)
