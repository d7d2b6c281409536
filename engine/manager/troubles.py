"""One line when the cluster goes away and one when it is back, however many watches notice."""

import threading
import time
from collections.abc import Callable

from engine.telemetry.events import Emit, Notice, Trouble

_AGAIN_AFTER = 300.0


class WatchTroubles:
    """Sums up what watches complain of. Safe to use from several threads.

    A trouble with other words is told at once, the same one every five minutes.
    """

    def __init__(self, emit: Emit, clock: Callable[[], float] = time.monotonic) -> None:
        self._emit = emit
        self._clock = clock
        self._lock = threading.Lock()
        self._since: float | None = None
        self._told: dict[str, float] = {}

    def __call__(self, message: str) -> None:
        words, now = message.partition(": ")[2] or message, self._clock()
        with self._lock:
            self._since = now if self._since is None else self._since
            if now - self._told.get(words, -_AGAIN_AFTER) < _AGAIN_AFTER:
                return
            self._told[words] = now
        self._emit(Trouble(None, message, retrying=True))

    def all_is_well(self) -> None:
        """Every watch hears its server."""
        with self._lock:
            since, self._since = self._since, None
            self._told.clear()
        if since is not None:
            away = self._clock() - since
            self._emit(Notice(f"the watches of the cluster are back after {away:.0f} s"))
