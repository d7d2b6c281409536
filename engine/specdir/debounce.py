"""When it is time to read: after a burst of events has gone quiet, but not too late either."""

import math
import threading
import time
from collections.abc import Callable

from engine.runtime.supervisor import SupervisedThread, Supervisor

QUIET_SECONDS = 0.010
MAX_DELAY_SECONDS = 0.250
_MAX_DUTY = 20
_STALL_TIMEOUT, _JOIN_TIMEOUT = 300.0, 60.0


class Debouncer:
    """A thread that calls `callback` after events, and on time.

    Guarantees: `callback` is called QUIET_SECONDS after the last event of a burst, at the latest
    MAX_DELAY_SECONDS after its first; every `poll_interval` seconds, and whenever a check is due,
    it is called if `has_changed` says so then. Checks take a twentieth of the time at most.
    Between those the thread sleeps.
    """

    def __init__(
        self,
        callback: Callable[[], None],
        has_changed: Callable[[], bool],
        poll_interval: float,
    ) -> None:
        self._callback = callback
        self._has_changed = has_changed
        self._poll_interval = poll_interval
        self._first: float | None = None
        """When the burst that is under way began."""
        self._last = 0.0
        """When its last event came."""
        self._due = math.inf
        """When to call, burst or not."""
        self._check_due = math.inf
        self._earliest_check = 0.0
        self._stopped = False
        self._changed = threading.Condition()
        self._thread: SupervisedThread | None = None

    def start(self, supervisor: Supervisor) -> None:
        """Begin to wait for events."""
        self._check_due = time.monotonic() + self._poll_interval
        self._thread = supervisor.start("debouncer of the spec directory", self._run)

    def trigger(self) -> None:
        """An event has come."""
        with self._changed:
            self._last = time.monotonic()
            if self._first is None:
                self._first = self._last
                self._changed.notify()

    def schedule(self, seconds: float) -> None:
        """Call in `seconds` at the latest, whatever happens."""
        with self._changed:
            self._due = min(self._due, time.monotonic() + seconds)
            self._changed.notify()

    def check_in(self, seconds: float) -> None:
        """Ask in `seconds` at the latest whether anything has changed."""
        due = time.monotonic() + seconds
        if due < self._check_due:
            with self._changed:
                self._check_due = min(self._check_due, due)
                self._changed.notify()

    def set_poll_interval(self, seconds: float) -> None:
        """Ask so often from now on whether anything has changed."""
        self._poll_interval = seconds
        self.check_in(seconds)

    def stop(self) -> None:
        """Guarantees: once this returns, `callback` isn't called any more; unless it calls this,
        or takes a minute.
        """
        with self._changed:
            self._stopped = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(_JOIN_TIMEOUT)

    def _run(self, thread: SupervisedThread) -> None:
        while True:
            thread.expect(math.inf)
            with self._changed:
                now = time.monotonic()
                due, check = self._next_call(), max(self._check_due, self._earliest_check)
                if self._stopped:
                    return
                if now < min(due, check):
                    self._changed.wait(min(due, check) - now)
                    continue
                if now >= due:
                    self._first, self._due = None, math.inf
                if now >= check:
                    self._check_due = now + self._poll_interval
            thread.expect(_STALL_TIMEOUT)
            if now >= due or self._check(now):
                self._callback()

    def _check(self, start: float) -> bool:
        """Errors: none; what fails here fails again, and is reported, where it is read."""
        try:
            changed = self._has_changed()
        except Exception:  # noqa: BLE001 - the thread must live
            changed = True
        end = time.monotonic()
        self._earliest_check = end + (end - start) * _MAX_DUTY
        return changed

    def _next_call(self) -> float:
        if self._first is None:
            return self._due
        return min(self._due, self._last + QUIET_SECONDS, self._first + MAX_DELAY_SECONDS)
