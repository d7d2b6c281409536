"""When it is time to read: after a burst of events has gone quiet, but not too late either."""

import math
import threading
import time
from collections.abc import Callable

QUIET = 0.010
LONGEST_BURST = 0.250
_SHARE = 20


class Pulse:
    """A thread that calls `fire` after events, and on time.

    Guarantees: `fire` is called QUIET seconds after the last event of a burst, at the latest
    LONGEST_BURST after its first, and every `interval` seconds if `differs` says so then.
    Looking takes a twentieth of the time at most. Between those the thread sleeps.
    """

    def __init__(
        self, fire: Callable[[], None], differs: Callable[[], bool], interval: float
    ) -> None:
        self._fire = fire
        self._differs = differs
        self._interval = interval
        self._first: float | None = None
        self._last = 0.0
        self._due: float | None = None
        self._look = 0.0
        self._stopped = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="source-pulse", daemon=True)

    def start(self) -> None:
        self._look = time.monotonic() + self._interval
        self._thread.start()

    def event(self) -> None:
        """Something has changed."""
        now = time.monotonic()
        with self._changed:
            self._last = now
            if self._first is None:
                self._first = now
                self._changed.notify()

    def more(self) -> None:
        """Something is changing: a burst that is under way goes on, but none begins."""
        self._last = time.monotonic()

    def later(self, seconds: float) -> None:
        """Fire in `seconds` at the latest, whatever happens."""
        due = time.monotonic() + seconds
        with self._changed:
            if self._due is None or due < self._due:
                self._due = due
                self._changed.notify()

    def look_every(self, interval: float) -> None:
        with self._changed:
            self._interval = interval
            self._look = min(self._look, time.monotonic() + interval)
            self._changed.notify()

    def stop(self) -> None:
        """Guarantees: once this returns, `fire` is not called again; unless `fire` calls this."""
        with self._changed:
            self._stopped = True
            self._changed.notify()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                now = time.monotonic()
                due = self._next()
                if self._stopped:
                    return
                if now < due and now < self._look:
                    self._changed.wait(min(due, self._look) - now)
                    continue
                if now >= due:
                    self._first = self._due = None
            if now >= self._look:
                differs = self._differs()
                took = time.monotonic() - now
                self._look = time.monotonic() + max(self._interval, _SHARE * took)
            else:
                differs = False
            if differs or now >= due:
                self._fire()

    def _next(self) -> float:
        quiet = self._last + QUIET
        burst = math.inf if self._first is None else min(quiet, self._first + LONGEST_BURST)
        return burst if self._due is None else min(burst, self._due)
