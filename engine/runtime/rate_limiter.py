"""How fast failures come back: each key by its own back-off, all of them through one bucket.

The model is client-go's default for controllers: a key's waits double, and however many keys fail
at once, they don't all come back at once.
"""

import threading
import time
from collections.abc import Callable, Hashable

from engine.runtime.backoff import backoff

_FIRST_WAIT, _LONGEST_WAIT = 0.1, 15.0
_RATE, _BURST = 100.0, 500.0


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
        """Seconds until the token that is taken by this call is there."""
        with self._lock:
            now = self._clock()
            self._tokens = min(self._burst, self._tokens + (now - self._at) * self._rate) - 1
            self._at = now
            return max(0.0, -self._tokens / self._rate)


class ItemRateLimiter:
    """Waits for keys that failed. Safe to use from several threads."""

    def __init__(self, bucket: TokenBucket | None = None) -> None:
        self.retries_total = 0
        """How often `when` was asked."""
        self._bucket = bucket or TokenBucket()
        self._failures: dict[Hashable, int] = {}
        self._lock = threading.Lock()

    def when(self, key: Hashable, *, longest: float = _LONGEST_WAIT) -> float:
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
