"""The clocks by which files are judged: the one that dates them, and one that nobody sets."""

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Clocks:
    """The system's, unless a test hands in others."""

    wall_ns: Callable[[], int] = time.time_ns
    """Nanoseconds, as in the times of a file. It may be set, forward and back."""
    monotonic: Callable[[], float] = time.monotonic
    """Seconds."""


SYSTEM_CLOCKS = Clocks()
