"""Times as the API, the record and the JSON result write them, and a clock for durations."""

import sys
import time as clock
from datetime import UTC, datetime

LATEST = datetime(2999, 12, 31, tzinfo=UTC)
"""A pod's status may claim any time. Durations can still be added to this one."""


def parse_time(text: str | None) -> datetime | None:
    """Aware datetime of an RFC 3339 time of the API, LATEST at most; None for nothing.

    Errors: ValueError for any other text, or a time without a zone.
    """
    if not text:
        return None
    time = datetime.fromisoformat(text)
    if time.tzinfo is None:
        raise ValueError(f"no time with a zone: {text!r}")
    return min(time, LATEST)


def format_time(time: datetime | None) -> str | None:
    """RFC 3339 with milliseconds and Z, as the JSON result and the record have it."""
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z") if time else None


def earliest(*times: datetime | None) -> datetime | None:
    """The first of those that are known; None if none is."""
    return min(filter(None, times), default=None)


def micro_time(now: datetime) -> str:
    """As Kubernetes writes a MicroTime."""
    return now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def boottime() -> float:
    """Seconds of a clock that is never set. On Linux it goes on while the machine sleeps."""
    linux = sys.platform == "linux"
    return clock.clock_gettime(clock.CLOCK_BOOTTIME) if linux else clock.monotonic()
