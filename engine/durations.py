"""Durations as people write them: a bare integer is seconds, else Go's units, days and weeks."""

import math
import re
from functools import lru_cache

_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|[smhdw])")
_PARTS = re.compile(f"(?:{_PART.pattern})+")
_UNITS = {"w": 604800, "d": 86400, "h": 3600, "m": 60, "s": 1, "ms": 0.001}
_STEPS = ((86400, "d"), (3600, "h"), (60, "m"), (1, "s"))
_LONGEST = 100 * 365 * 86400.0

FOREVER = "forever"
"""The word for no end."""
EXAMPLE = "use seconds, such as 11700, or units, such as 90s, 3h15m, 7d or 1w"
"""The hint of every duration that can't be read."""


def parse_duration(value: str | float) -> float:
    """Seconds of `value`: an integer (seconds) or a string such as `3h15m`, `7d` or `11700`.

    Errors: ValueError, with a message for people, on anything else, and on what is negative or
    longer than a hundred years.
    """
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueError(f"{value!r} is not a duration: {EXAMPLE}")  # noqa: TRY004 - as documented
    return _seconds(str(value).strip())


@lru_cache(maxsize=256)
def _seconds(text: str) -> float:
    """Of a text; most specs have the same few."""
    if text.isascii() and text.isdigit():
        seconds = float(text) if len(text) < len(str(int(_LONGEST))) + 1 else math.inf
    elif _PARTS.fullmatch(text):
        seconds = sum(float(count) * _UNITS[unit] for count, unit in _PART.findall(text))
        seconds = round(seconds, 6) if seconds <= _LONGEST else math.inf
    else:
        raise ValueError(f"{text!r} is not a duration: {EXAMPLE}")
    if seconds > _LONGEST:
        raise ValueError(f"{text!r} is longer than a hundred years")
    return seconds


def format_duration(seconds: float) -> str:
    """An exact text of whole seconds: `11700` gives `3h15m`, `0` gives `0s`. Weeks are days."""
    rest = max(0, round(seconds))
    parts = []
    for size, unit in _STEPS:
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


def format_age(seconds: float) -> str:
    """The largest unit alone, as in kubectl: 42s, 7m, 3h, 2d."""
    for size, unit in _STEPS[:-1]:
        if seconds >= 2 * size:
            return f"{int(seconds // size)}{unit}"
    return f"{max(0, int(seconds))}s"
