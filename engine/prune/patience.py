"""Ask again when the server is busy or the line is bad; anything else goes up at once."""

import time
from collections.abc import Callable
from typing import TypeVar

from engine.errors import BusyError, UnreachableError
from engine.runtime.backoff import backoff

T = TypeVar("T")

TRIES = 4
_FIRST_WAIT, _LONGEST_WAIT = 0.2, 5.0


def patiently(ask: Callable[[], T]) -> T:
    """For reads, which may be repeated. Errors: the last one, after TRIES."""
    for tries in range(1, TRIES):
        try:
            return ask()
        except (BusyError, UnreachableError) as error:
            pause(tries, error)
    return ask()


def pause(tries: int, error: BusyError | UnreachableError) -> None:
    """Wait after try number `tries`, at least as long as the server asks for."""
    wait = backoff(tries, first=_FIRST_WAIT, longest=_LONGEST_WAIT)
    time.sleep(max(wait, min(getattr(error, "retry_after", 0.0), 10.0)))
