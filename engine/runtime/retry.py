"""Try again when the server is busy or the connection is bad; other errors are raised at once."""

import random
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from engine.errors import BusyError, UnreachableError

T = TypeVar("T")

TRIES = 5
"""For one of many objects: it must not keep the others waiting."""
BUSY_TIMEOUT, UNREACHABLE_TIMEOUT = 60.0, 10.0
"""A server that says it is busy is worth a minute; a silent one's address may be wrong."""
_FIRST_WAIT, _MAX_WAIT = 0.1, 2.0
_REPORT_AFTER = 3
_SPREAD = 0.2


def backoff(tries: int, *, first: float, longest: float) -> float:
    """Seconds before try number `tries` + 1 (`tries` counts from 1), give or take a fifth.

    The wait doubles with each try, up to `longest`.
    """
    exact = min(longest, first * 2.0 ** min(tries - 1, 32))
    return exact * random.uniform(1 - _SPREAD, 1 + _SPREAD)


class RateLimiter:
    """So many events a second, after a burst; used from many threads.

    As the bucket of client-go's default rate limiter, which all items of a controller share.
    """

    def __init__(self, rate: float, burst: int) -> None:
        self._gap, self._burst = 1 / rate, burst / rate
        self._next = float("-inf")
        self._lock = threading.Lock()

    def reserve(self, now: float) -> float:
        """Seconds from `now`, a monotonic time, until this event may happen."""
        with self._lock:
            self._next = max(self._next + self._gap, now - self._burst)
            return max(0.0, self._next - now)


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
    """Seconds to wait after so many failures: back-off, or longer if the server asks for it."""
    return max(backoff(failures, first=_FIRST_WAIT, longest=_MAX_WAIT), error.retry_after)
