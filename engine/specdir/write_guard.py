"""Whether a file may be read now, or somebody is still writing it."""

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace

from engine.specdir.clocks import SYSTEM_CLOCKS, Clocks
from engine.specdir.directory_watch import STILL_FOR, DirectoryWatch
from engine.specdir.scan import ScannedFile, Signature

_GONE_AFTER = 0.1
_SOONEST = 0.05
"""For files that become complete one after the other."""


@dataclass(frozen=True, slots=True)
class _Look:
    """What was seen of a file that may be in the middle of being written.

    Times are seconds of the monotonic clock.
    """

    signature: Signature
    at: float
    written: float
    """When it was last written, at the latest."""


class WriteGuard:
    """Asked about each changed file of a scan; `recheck_in` says when to ask about the others.

    A file is complete once it was closed or renamed after its last write, or has stood still for
    STILL_FOR seconds; by polling alone, once it looks the same as in the scan before. Its date
    says how long it has stood still; where that is ahead of the clock, only looking again does.
    An event that comes late, or never, delays a file, and never lets half of it pass. What was
    there before the watch began is taken as it is. A missing file may be in the middle of being
    replaced (git removes a file before it writes the new one): it is deleted when it is missing
    still a moment later.
    """

    def __init__(self, watch: DirectoryWatch, clocks: Clocks = SYSTEM_CLOCKS) -> None:
        self._watch = watch
        self._clocks = clocks
        self._previous: Mapping[str, Signature] | None = None
        self._waiting: dict[str, _Look] = {}
        self._still_waiting: dict[str, _Look] = {}
        self._missing: dict[str, float] = {}
        self._still_missing: dict[str, float] = {}
        self.recheck_in = math.inf
        """Seconds; infinity when there is nothing to wait for."""

    def begin(self, previous: Mapping[str, Signature] | None) -> None:
        """A scan has been made; `previous` is what the one before it saw."""
        self._previous = previous
        self._waiting, self._still_waiting = self._still_waiting, {}
        self._missing, self._still_missing = self._still_missing, {}
        self.recheck_in = math.inf

    def is_complete(self, found: ScannedFile) -> bool:
        """Whether nobody is writing the file."""
        if not self._watch.started or not found.signature:
            return True
        look = self._look_at(found)
        left = look.written + STILL_FOR - look.at
        if left <= 0 or self._is_known_complete(found, look):
            return True
        self._still_waiting[found.key] = look
        return self._recheck(self._watch.poll_interval if self._watch.polling else left)

    def is_deleted(self, key: str) -> bool:
        """Whether a missing file isn't about to come back."""
        if not self._watch.started:
            return True
        if self._watch.polling:
            seen = self._previous is not None and key in self._previous
            return not seen or self._recheck(self._watch.poll_interval)
        now = self._clocks.monotonic()
        since = self._still_missing[key] = self._missing.get(key, now)
        left = since + _GONE_AFTER - now
        return left <= 0 or self._recheck(left)

    def _look_at(self, found: ScannedFile) -> _Look:
        # The monotonic clock is read last: what lies between makes a file younger, never older.
        wall, now = self._clocks.wall_ns(), self._clocks.monotonic()
        before = self._waiting.get(found.key)
        if before is not None and before.signature == found.signature:
            return replace(before, at=now)
        modified, changed = found.signature[3:]
        dated = modified if modified <= wall else min(changed, wall)
        return _Look(found.signature, now, now - (wall - dated) / 1e9)

    def _is_known_complete(self, found: ScannedFile, look: _Look) -> bool:
        if self._watch.polling:
            return self._previous is not None and self._previous.get(found.key) == look.signature
        size, (modified, changed) = found.signature[2], found.signature[3:]
        written = modified if modified <= self._clocks.wall_ns() else changed
        return size > 0 and written <= self._watch.completed_at(os.path.realpath(found.key))

    def _recheck(self, seconds: float) -> bool:
        """Always False: not now."""
        self.recheck_in = min(self.recheck_in, max(seconds, _SOONEST))
        return False
