"""Whether a file may be read now, or somebody is still at it."""

import math
import os
import time
from collections.abc import Mapping

from engine.specdir.scan import Found, Signature
from engine.specdir.watch import SETTLED_AFTER, Watch

_BARELY_WRITTEN = 0.005
_GONE_AFTER = 0.1


class Settling:
    """Asked about each changed file of a scan; `wait` tells when to ask again about the others.

    With inotify a file is finished once it was closed. By looking alone: once it looks the same
    as in the scan before. Either way after SETTLED_AFTER seconds without a change. A missing file
    may be in the middle of being replaced (git removes a file before it writes the new one): it
    is gone when it is missing still a moment later.
    """

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._before: Mapping[str, Signature] | None = None
        self._missing: dict[str, float] = {}
        self._still_missing: dict[str, float] = {}
        self.wait = math.inf

    def begin(self, before: Mapping[str, Signature] | None) -> None:
        """A scan has been made; `before` is what the one before it saw."""
        self._before = before
        self._missing, self._still_missing = self._still_missing, {}
        self.wait = math.inf

    def is_settled(self, found: Found) -> bool:
        if not self._watch.started or not found.signature:
            return True
        size, modified = found.signature[2], found.signature[3] / 1e9
        age = time.time() - modified
        if age >= SETTLED_AFTER:
            return True
        if self._watch.polling:
            same = self._before is not None and self._before.get(found.key) == found.signature
            return same or self._ask_again(self._watch.interval)
        if 0 <= age < _BARELY_WRITTEN:
            return self._ask_again(_BARELY_WRITTEN)
        if size == 0 and age >= 0:
            return self._ask_again(SETTLED_AFTER - age)
        left = self._watch.being_written(os.path.realpath(found.key))
        return not left or self._ask_again(left)

    def is_gone(self, key: str) -> bool:
        if not self._watch.started:
            return True
        if self._watch.polling:
            seen = self._before is not None and key in self._before
            return not seen or self._ask_again(self._watch.interval)
        now = time.monotonic()
        since = self._still_missing[key] = self._missing.get(key, now)
        left = since + _GONE_AFTER - now
        return left <= 0 or self._ask_again(left)

    def _ask_again(self, seconds: float) -> bool:
        """Always False: not now."""
        self.wait = min(self.wait, seconds)
        return False
