"""A work queue with client-go's semantics, its rate limiter, and the threads that take keys.

Guarantees: a key is never handed out twice at once. A key that is added meanwhile is handed out
again afterwards. A key that is added many times before it is taken is handed out once.
"""

import heapq
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from engine.runtime.retry import backoff
from engine.runtime.supervisor import SupervisedThread, Supervisor

Key = TypeVar("Key", bound=Hashable)

_SLACK = 1000
_STALL_TIMEOUT = 600.0
_RETRY_AFTER = 5.0
_FIRST_WAIT, _MAX_WAIT = 0.1, 15.0
_RATE, _BURST = 100.0, 500.0


class WorkQueue(Generic[Key]):
    """Keys to be worked on, in the order they came, some of them later.

    `on_queue_latency` is given the seconds for which each key that is handed out was ready.
    """

    def __init__(self, on_queue_latency: Callable[[float], None] | None = None) -> None:
        self.adds = 0
        """How many keys were put into the queue, those counted once that were there already."""
        self._on_queue_latency = on_queue_latency
        self._condition = threading.Condition()
        self._ready: deque[tuple[Key, float]] = deque()
        """Keys to hand out, in order, with the time since when. Each of them is dirty, and none is
        being processed."""
        self._dirty: set[Key] = set()
        """Keys that need processing: those that are ready, and those to be ready once they are
        done."""
        self._processing: set[Key] = set()
        """Keys that were handed out and are not done yet; they may be dirty, too."""
        self._waiting: list[tuple[float, int, Key]] = []
        """A heap of when, in which order, and what to add; an entry that `_due` doesn't confirm
        counts no more."""
        self._due: dict[Key, float] = {}
        """When each waiting key is added: the earliest of the times it was asked for."""
        self._count = 0
        self._shut_down = False
        self._paused = False

    def __len__(self) -> int:
        """How many keys are ready and waiting for a worker."""
        return len(self._ready)

    def add(self, key: Key) -> None:
        """Mark `key` dirty: it is handed out once more."""
        with self._condition:
            self._add(key)

    def add_after(self, key: Key, seconds: float) -> None:
        """Add `key` after `seconds`; the earliest of several such times counts."""
        due = time.monotonic() + max(0.0, seconds)
        with self._condition:
            if self._shut_down or self._due.get(key, float("inf")) <= due:
                return
            self._due[key] = due
            self._count += 1
            heapq.heappush(self._waiting, (due, self._count, key))
            self._condition.notify()

    def forget_delayed(self, key: Key) -> None:
        """Take back what `add_after` was asked for; a key that is ready stays so."""
        with self._condition:
            if self._due.pop(key, None) is not None and len(self._waiting) > _SLACK + len(
                self._due
            ):
                self._waiting = [
                    entry for entry in self._waiting if self._due.get(entry[2]) == entry[0]
                ]
                heapq.heapify(self._waiting)

    def get(self) -> Key | None:
        """The next key, as soon as there is one; None once it is shut down."""
        with self._condition:
            while True:
                if self._shut_down:
                    return None
                wait = self._move_ready()
                if self._ready and not self._paused:
                    key, since = self._ready.popleft()
                    self._dirty.discard(key)
                    self._processing.add(key)
                    break
                self._condition.wait(wait)
        if self._on_queue_latency is not None:
            self._on_queue_latency(time.monotonic() - since)
        return key

    def done(self, key: Key) -> None:
        """`key` is processed; if it became dirty meanwhile, it is ready again."""
        with self._condition:
            self._processing.discard(key)
            if key in self._dirty:
                self._ready.append((key, time.monotonic()))
                self._condition.notify()

    def pause(self) -> None:
        """Hand nothing out until `resume`; keys that are being processed go on."""
        with self._condition:
            self._paused = True

    def resume(self) -> None:
        """Hand out again."""
        with self._condition:
            self._paused = False
            self._condition.notify_all()

    def shut_down(self) -> None:
        """Wake every reader with None; keys that are ready or waiting are dropped."""
        with self._condition:
            self._shut_down = True
            self._condition.notify_all()

    def _add(self, key: Key) -> None:
        if self._shut_down or key in self._dirty:
            return
        self._dirty.add(key)
        self.adds += 1
        if key not in self._processing:
            self._ready.append((key, time.monotonic()))
            self._condition.notify()

    def _move_ready(self) -> float | None:
        """Move keys whose time has come; seconds until the next one."""
        now = time.monotonic()
        while self._waiting:
            due, _, key = self._waiting[0]
            if self._due.get(key) != due:
                heapq.heappop(self._waiting)
            elif due <= now:
                heapq.heappop(self._waiting)
                del self._due[key]
                self._add(key)
            else:
                return due - now
        return None


class Workers(Generic[Key]):
    """`count` threads; `handle` is called with one key at a time.

    A key is done when `handle` returns True; otherwise its new owner calls the queue's `done`.
    Guarantees: the supervisor reports what `handle` raises, and the key is handed out again. A call
    that takes longer than `stall_timeout` makes liveness fail.
    """

    def __init__(
        self,
        queue: WorkQueue[Key],
        handle: Callable[[Key], bool],
        count: int,
        supervisor: Supervisor,
        name: str = "worker",
        *,
        stall_timeout: float = _STALL_TIMEOUT,
    ) -> None:
        self._queue = queue
        self._handle = handle
        self._count = count
        self._supervisor = supervisor
        self._name = name
        self._stall_timeout = stall_timeout
        self._threads: list[SupervisedThread] = []

    def start(self) -> None:
        """Begin to take keys."""
        self._threads = [
            self._supervisor.start(f"{self._name}-{number}", self._run)
            for number in range(self._count)
        ]

    def stop(self, seconds: float) -> bool:
        """Shut the queue down and wait for the threads; whether all ended within `seconds`."""
        self._queue.shut_down()
        deadline = time.monotonic() + seconds
        ended = [thread.join(deadline - time.monotonic()) for thread in self._threads]
        return all(ended)

    def _run(self, thread: SupervisedThread) -> None:
        while True:
            thread.expect(math.inf)
            key = self._queue.get()
            if key is None:
                return
            thread.expect(self._stall_timeout)
            done = True
            try:
                done = self._handle(key)
            except Exception:
                self._queue.add_after(key, _RETRY_AFTER)
                raise
            finally:
                if done:
                    self._queue.done(key)


class TokenBucket:
    """A token bucket: `burst` at once, then `rate` a second. Safe to use from several threads."""

    def __init__(
        self,
        rate: float = _RATE,
        burst: float = _BURST,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._rate, self._burst, self._clock = rate, burst, clock
        self._tokens, self._at = burst, clock()
        self._lock = threading.Lock()

    def reserve(self) -> float:
        """Take a token; the seconds until it is there."""
        with self._lock:
            now = self._clock()
            self._tokens = min(self._burst, self._tokens + (now - self._at) * self._rate) - 1
            self._at = now
            return max(0.0, -self._tokens / self._rate)


class ItemRateLimiter:
    """Waits for keys that failed. Safe to use from several threads.

    A key's waits double, and however many keys fail at once, they don't all come back at once.
    """

    def __init__(self, bucket: TokenBucket | None = None) -> None:
        self.retries_total = 0
        """How often `when` was asked."""
        self._bucket = bucket or TokenBucket()
        self._failures: dict[Hashable, int] = {}
        self._lock = threading.Lock()

    def when(self, key: Hashable, *, longest: float = _MAX_WAIT) -> float:
        """Seconds to wait after one more failure of `key`."""
        with self._lock:
            self.retries_total += 1
            failures = self._failures[key] = self._failures.get(key, 0) + 1
        own = backoff(failures, first=_FIRST_WAIT, longest=longest)
        return max(own, self._bucket.reserve())

    def failures(self, key: Hashable) -> int:
        """How often `key` has failed since it was forgotten."""
        with self._lock:
            return self._failures.get(key, 0)

    def forget(self, key: Hashable) -> None:
        """`key` has succeeded, or is gone."""
        with self._lock:
            self._failures.pop(key, None)
