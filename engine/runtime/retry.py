"""Ask again when the server is busy, or the connection is bad; anything else goes up at once."""

import time
from collections.abc import Callable
from typing import TypeVar

from engine.errors import BusyError, UnreachableError
from engine.runtime.backoff import backoff

T = TypeVar("T")

TRIES = 5
"""For one of many objects: it must not keep the others waiting."""
BUSY_TIMEOUT, UNREACHABLE_TIMEOUT = 60.0, 10.0
"""A server that says it is busy is worth a minute; a silent one's address may be wrong."""
_FIRST_WAIT, _LONGEST_WAIT = 0.1, 2.0
_REPORT_AFTER = 3


def retry_transient(
    ask: Callable[[], T],
    on_error: Callable[[str], None] = lambda _: None,
    *,
    tries: int | None = None,
    timeout: float | None = None,
) -> T:
    """What `ask` returns, after so many `tries` or `timeout` seconds at the latest.

    `on_error` gets the words of a failure that lasts, once.
    Assumptions: `ask` may be repeated. Errors: its last one.
    """
    began, failures, patience = time.monotonic(), 0, UNREACHABLE_TIMEOUT
    while True:
        try:
            return ask()
        except (BusyError, UnreachableError) as error:
            if isinstance(error, BusyError):
                patience = BUSY_TIMEOUT
            failures += 1
            wait = retry_delay(error, failures)
            end = began + (patience if timeout is None else min(patience, timeout))
            if failures == tries or time.monotonic() + wait > end:
                raise
            if failures == _REPORT_AFTER:
                on_error(str(error))
            time.sleep(wait)


def retry_delay(error: BusyError | UnreachableError, failures: int) -> float:
    """Seconds to wait after so many failures: back-off, and what the server asks for."""
    return max(backoff(failures, first=_FIRST_WAIT, longest=_LONGEST_WAIT), error.retry_after)
