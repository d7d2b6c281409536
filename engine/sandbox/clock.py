"""The sandbox's one clock: server, node, garbage collector and quotas all read and wait on it.

It exists so that a test can let three hours pass in a millisecond. Every wait is a timer in one
heap. ``advance`` runs the timers that fall due, in order, in the caller's thread.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_log = logging.getLogger("engine.sandbox")


@dataclass(order=True, slots=True)
class Timer:
    """One thing to do at one time. ``cancel`` is enough: a cancelled timer is skipped when due."""

    when: float
    order: int
    action: Callable[[], None] = field(compare=False)
    cancelled: bool = field(default=False, compare=False)

    def cancel(self) -> None:
        """Never run it."""
        self.cancelled = True


class Clock:
    """Time at ``speed`` times the machine's; with ``speed=0`` it moves by ``advance`` alone.

    Guarantees: timers run one at a time, in the order of their times; while ``advance`` runs them,
    ``now()`` is each timer's own time, so what it writes carries the right timestamp.
    """

    def __init__(self, start: datetime | None = None, speed: float = 1.0) -> None:
        if speed < 0:
            raise ValueError("speed: time cannot run backwards")
        self.speed = speed
        begin = start.timestamp() if start is not None else time.time()
        self._anchor = (begin, time.monotonic())
        self._heap: list[Timer] = []
        self._order = itertools.count()
        self._wake = threading.Condition()
        self._running = threading.RLock()
        self._thread: threading.Thread | None = None
        self._stopped = False

    def now(self) -> float:
        """Seconds since the epoch, in sandbox time."""
        base, since = self._anchor
        return base + (time.monotonic() - since) * self.speed

    def stamp(self) -> str:
        """Now, as Kubernetes writes a time."""
        return rfc3339(self.now())

    def call_later(self, delay: float, action: Callable[[], None]) -> Timer:
        """Run `action` after `delay` seconds of this clock."""
        return self.call_at(self.now() + delay, action)

    def call_at(self, when: float, action: Callable[[], None]) -> Timer:
        """Run `action` at this time, or at once where it has passed."""
        timer = Timer(when, next(self._order), action)
        with self._wake:
            heapq.heappush(self._heap, timer)
            if self._heap[0] is timer:
                self._wake.notify()
        return timer

    def advance(self, seconds: float) -> None:
        """Let ``seconds`` pass at once; returns when everything that fell due has been done."""
        target = self.now() + seconds
        with self._running:
            while (timer := self._pop(target)) is not None:
                self._move_to(timer.when)
                self._run(timer)
            self._move_to(target)
        with self._wake:
            self._wake.notify()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """No timer runs meanwhile: for who acts on the node from another thread."""
        with self._running:
            yield

    def settle(self) -> None:
        """Do everything that is due already, and what follows from it without a wait."""
        self.advance(0)

    def start(self) -> None:
        """Run timers from now on."""
        self._stopped = False
        self._thread = threading.Thread(target=self._loop, name="sandbox-clock", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Run none any more; returns when the last one is done."""
        with self._wake:
            self._stopped = True
            self._wake.notify()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def _move_to(self, when: float) -> None:
        if when > self.now():
            self._anchor = (when, time.monotonic())

    def _pop(self, until: float) -> Timer | None:
        with self._wake:
            while self._heap and self._heap[0].when <= until:
                timer = heapq.heappop(self._heap)
                if not timer.cancelled:
                    return timer
        return None

    def _run(self, timer: Timer) -> None:
        try:
            timer.action()
        except Exception:  # noqa: BLE001 - one failed timer must not stop the others
            _log.exception("sandbox: a timer failed")

    def _loop(self) -> None:
        while True:
            with self._running:
                timer = self._pop(self.now())
                if timer is not None:
                    self._run(timer)
            if timer is None and not self._wait():
                return

    def _wait(self) -> bool:
        """Wait for the next timer or a change; False once stopped."""
        with self._wake:
            if self._stopped:
                return False
            if not self._heap:
                self._wake.wait()
            elif (left := self._heap[0].when - self.now()) > 0:
                self._wake.wait(left / self.speed if self.speed else None)
            return not self._stopped


def rfc3339(when: float) -> str:
    """A time in seconds since 1970, as Kubernetes writes it."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(when))


def rfc3339_micro(when: float) -> str:
    """The same with microseconds, as in a Lease or an Event."""
    return datetime.fromtimestamp(when, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parse_rfc3339(text: str) -> float:
    """Seconds since 1970. Errors: ValueError."""
    return datetime.fromisoformat(text).timestamp()
