"""A work queue with client-go's semantics.

Guarantees: a key that is being worked on is never handed out a second time; a key added meanwhile
is handed out again afterwards; a key added many times before it is taken is handed out once.
"""

import heapq
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)

_SLACK = 1000


class WorkQueue(Generic[Key]):
    """Keys to be worked on, in the order they came, some of them later.

    `on_wait` hears for how many seconds each key that is handed out was ready.
    """

    def __init__(self, on_wait: Callable[[float], None] | None = None) -> None:
        self.adds = 0
        self._on_wait = on_wait
        self._condition = threading.Condition()
        self._ready: deque[tuple[Key, float]] = deque()
        self._dirty: set[Key] = set()
        self._processing: set[Key] = set()
        self._later: list[tuple[float, int, Key]] = []
        self._due: dict[Key, float] = {}
        self._count = 0
        self._closed = False
        self._paused = False

    def __len__(self) -> int:
        """How many keys are ready and waiting for a worker."""
        return len(self._ready)

    def add(self, key: Key) -> None:
        with self._condition:
            self._add(key)

    def add_after(self, key: Key, seconds: float) -> None:
        """Add `key` after `seconds`; the earliest of several such times counts."""
        due = time.monotonic() + max(0.0, seconds)
        with self._condition:
            if self._closed or self._due.get(key, float("inf")) <= due:
                return
            self._due[key] = due
            self._count += 1
            heapq.heappush(self._later, (due, self._count, key))
            self._condition.notify()

    def cancel(self, key: Key) -> None:
        """Take back what `add_after` was asked for; a key that is ready stays so."""
        with self._condition:
            if self._due.pop(key, None) is not None and len(self._later) > _SLACK + len(self._due):
                self._later = [
                    entry for entry in self._later if self._due.get(entry[2]) == entry[0]
                ]
                heapq.heapify(self._later)

    def get(self) -> Key | None:
        """The next key, as soon as there is one; None once the queue is closed."""
        with self._condition:
            while True:
                if self._closed:
                    return None
                wait = self._promote()
                if self._ready and not self._paused:
                    key, since = self._ready.popleft()
                    self._dirty.discard(key)
                    self._processing.add(key)
                    break
                self._condition.wait(wait)
        if self._on_wait is not None:
            self._on_wait(time.monotonic() - since)
        return key

    def done(self, key: Key) -> None:
        """The work on `key` is over; it comes again if it was added meanwhile."""
        with self._condition:
            self._processing.discard(key)
            if key in self._dirty:
                self._ready.append((key, time.monotonic()))
                self._condition.notify()

    def pause(self) -> None:
        """Hand nothing out until `resume`; what is being worked on goes on."""
        with self._condition:
            self._paused = True

    def resume(self) -> None:
        with self._condition:
            self._paused = False
            self._condition.notify_all()

    def close(self) -> None:
        """Wake every reader with None; keys that are still waiting are dropped."""
        with self._condition:
            self._closed = True
            self._condition.notify_all()

    def _add(self, key: Key) -> None:
        if self._closed or key in self._dirty:
            return
        self._dirty.add(key)
        self.adds += 1
        if key not in self._processing:
            self._ready.append((key, time.monotonic()))
            self._condition.notify()

    def _promote(self) -> float | None:
        """Move keys whose time has come; seconds until the next one."""
        now = time.monotonic()
        while self._later:
            due, _, key = self._later[0]
            if self._due.get(key) != due:
                heapq.heappop(self._later)
            elif due <= now:
                heapq.heappop(self._later)
                del self._due[key]
                self._add(key)
            else:
                return due - now
        return None
