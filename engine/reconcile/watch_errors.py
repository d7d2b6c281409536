"""One line when the cluster goes away and one when it is back, however many watches notice."""

import threading
import time
from collections.abc import Callable

from engine.telemetry.events import Emit, ErrorReported, Notice

_REPORT_AGAIN_AFTER = 300.0


class WatchErrorReporter:
    """Sums up the errors of reflectors. Safe to use from several threads.

    An error in other words is reported at once, the same one every five minutes.
    """

    def __init__(self, emit: Emit, clock: Callable[[], float] = time.monotonic) -> None:
        self._emit = emit
        self._clock = clock
        self._lock = threading.Lock()
        self._since: float | None = None
        self._reported: dict[str, float] = {}

    def __call__(self, message: str) -> None:
        """Report an error, unless its like was reported a moment ago."""
        words, now = message.partition(": ")[2] or message, self._clock()
        with self._lock:
            self._since = now if self._since is None else self._since
            if now - self._reported.get(words, -_REPORT_AGAIN_AFTER) < _REPORT_AGAIN_AFTER:
                return
            self._reported[words] = now
        self._emit(ErrorReported(None, message, retrying=True))

    def recovered(self) -> None:
        """Every watch hears its server."""
        with self._lock:
            since, self._since = self._since, None
            self._reported.clear()
        if since is not None:
            away = self._clock() - since
            self._emit(Notice(f"the watches of the cluster are back after {away:.0f} s"))
