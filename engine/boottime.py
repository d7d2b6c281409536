"""A clock that nobody sets, and that doesn't stop while the machine sleeps."""

import sys
import time


def boottime() -> float:
    """Seconds since some moment; elsewhere than on Linux without those of sleep."""
    linux = sys.platform == "linux"
    return time.clock_gettime(time.CLOCK_BOOTTIME) if linux else time.monotonic()
