"""Ages and durations in the short form that ``kubectl get`` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.sandbox.clock import parse_rfc3339

if TYPE_CHECKING:
    from engine.sandbox.values import Obj

# Size and name of a unit; the unit below it, and until which count that is shown; up to where.
_AGES = (
    (1, "s", 0, 0, 120),
    (60, "m", 1, 10, 3 * 3600),
    (3600, "h", 60, 8, 48 * 3600),
    (86400, "d", 3600, 8, 365 * 86400),
)
_NAMES = {0: "", 1: "s", 60: "m", 3600: "h"}


def age(obj: Obj, now: float) -> str:
    """How old an object is, as tables say it."""
    return duration(now - parse_rfc3339(obj["metadata"]["creationTimestamp"]))


def duration(seconds: float) -> str:
    """As kubectl shortens it: 5s, 3m10s, 47m, 5h12m, 3d4h."""
    left = max(0, int(seconds))
    for size, unit, small, part, below in _AGES:
        count, rest = divmod(left, size)
        if left < below:
            more = rest // small if small and count < part else 0
            return f"{count}{unit}{more}{_NAMES[small]}" if more else f"{count}{unit}"
    return f"{left // 86400}d"
