"""A work queue with client-go's semantics.

Guarantees: a key is never handed out twice at once. A key that is added meanwhile is handed out
again afterwards. A key that is added many times before it is taken is handed out once.
"""

import heapq
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from msgspec import Struct, field

Key = TypeVar("Key", bound=Hashable)


class WorkQueue(Struct, Generic[Key], eq=False):
    """Keys to be worked on, in the order they came, some of them later.

    `on_queue_latency` is given the seconds for which each key that is handed out was ready.
    """

    on_queue_latency: Callable[[float], None] | None = None
    adds: int = 0
    """How many keys were put into the queue, those counted once that were there already."""
    _condition: threading.Condition = field(default_factory=threading.Condition)
    _dirty: OrderedDict[Key, float] = field(default_factory=OrderedDict)
    """Keys that need processing, in order, with the time since when. Those that are being
    processed are ready once they are done."""
    _processing: set[Key] = set()
    """Keys that were handed out and are not done yet; they may be dirty, too."""
    _waiting: list[tuple[float, Key]] = []
    """A heap of when to add what; an entry that `_due` doesn't confirm counts no more."""
    _due: dict[Key, float] = {}
    """When each waiting key is added: the earliest of the times it was asked for."""
    _shut_down: bool = False
    _paused: bool = False

    def __len__(self) -> int:
        """How many keys are ready and waiting for a worker."""
        with self._condition:
            return len(self._dirty.keys() - self._processing)

    def add(self, key: Key) -> None:
        """Mark `key` dirty: it is handed out once more."""
        with self._condition:
            if not self._shut_down and key not in self._dirty:
                self._dirty[key] = time.monotonic()
                self.adds += 1
                self._condition.notify()

    def add_after(self, key: Key, seconds: float) -> None:
        """Add `key` after `seconds`; the earliest of several such times counts."""
        due = time.monotonic() + max(0.0, seconds)
        with self._condition:
            if due < self._due.get(key, math.inf):
                self._due[key] = due
                heapq.heappush(self._waiting, (due, key))
                self._condition.notify()

    def get(self) -> Key | None:
        """The next key, as soon as there is one; None once it is shut down."""
        with self._condition:
            while not self._shut_down:
                wait = self._add_due()
                for key, since in () if self._paused else self._dirty.items():
                    if key not in self._processing:
                        del self._dirty[key]
                        self._processing.add(key)
                        if self._waiting:  # another reader wakes in time for it
                            self._condition.notify()
                        if self.on_queue_latency is not None:
                            self.on_queue_latency(time.monotonic() - since)
                        return key
                self._condition.wait(wait)
        return None

    def done(self, key: Key) -> None:
        """`key` is processed; if it became dirty meanwhile, it is ready again."""
        with self._condition:
            self._processing.discard(key)
            if key in self._dirty:
                self._dirty[key] = time.monotonic()
                self._condition.notify()

    def pause(self, paused: bool) -> None:
        """Hand nothing out, or hand out again; keys that are being processed go on."""
        with self._condition:
            self._paused = paused
            self._condition.notify_all()

    def shut_down(self) -> None:
        """Wake every reader with None; keys that are ready or waiting are dropped."""
        with self._condition:
            self._shut_down = True
            self._condition.notify_all()

    def _add_due(self) -> float | None:
        """Add keys whose time has come; seconds until the next one."""
        now = time.monotonic()
        while self._waiting:
            due, key = self._waiting[0]
            confirmed = self._due.get(key) == due
            if confirmed and due > now:
                return due - now
            heapq.heappop(self._waiting)
            if confirmed:
                del self._due[key]
                self.add(key)
        return None
