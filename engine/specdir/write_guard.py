"""Whether a file may be read now, or somebody is still writing it."""

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass

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
    since: float
    """When it was first seen so."""
    at: float
    written: float
    """When it was last written, as far as its date and the looks before tell."""


class WriteGuard:
    """Asked about each changed file of a scan; `recheck_in` says when to ask about the others.

    A file is complete once it was closed or renamed after its last write, or has stood still for
    STILL_FOR seconds; by polling alone, once it has looked the same for a whole interval, however
    many scans there were in it. Its date says how long it has stood still; where that is ahead of
    the clock, only looking again does. An event that comes late, or never, delays a file, and never
    lets half of it pass; nor does a clock that is set, unless it is set forward between a write and
    the first look. What was there before the watch began is taken as it is. A missing file may be
    in the middle of being replaced (git removes a file before it writes the new one): it is deleted
    when it is missing still a moment later, by polling alone an interval later.
    """

    def __init__(self, watch: DirectoryWatch, clocks: Clocks = SYSTEM_CLOCKS) -> None:
        self._watch = watch
        self._clocks = clocks
        self._wall = 0
        self._now = 0.0
        self._previous: Mapping[str, Signature] | None = None
        self._waiting: dict[str, _Look] = {}
        self._still_waiting: dict[str, _Look] = {}
        self._missing: dict[str, float] = {}
        self._still_missing: dict[str, float] = {}
        self.recheck_in = math.inf
        """Seconds; infinity when there is nothing to wait for."""

    def begin(self, previous: Mapping[str, Signature] | None) -> None:
        """A scan has been made; `previous` is what the one before it saw."""
        # The monotonic clock comes last: what lies between makes a file younger, never older.
        self._wall, self._now = self._clocks.wall_ns(), self._clocks.monotonic()
        self._previous = previous
        self._waiting, self._still_waiting = self._still_waiting, {}
        self._missing, self._still_missing = self._still_missing, {}
        self.recheck_in = math.inf

    def is_complete(self, found: ScannedFile) -> bool:
        """Whether nobody is writing the file."""
        if not self._watch.started or not found.signature:
            return True
        written = self._last_written(found)
        left = written + STILL_FOR - self._now
        if left <= 0 or self._is_known_complete(found, written):
            return True
        since = self._same_since(found)
        self._still_waiting[found.key] = _Look(found.signature, since, self._now, written)
        if self._watch.polling:
            left = since + self._watch.poll_interval - self._now
        return self._recheck(left)

    def is_deleted(self, key: str) -> bool:
        """Whether a missing file isn't about to come back."""
        if not self._watch.started:
            return True
        since = self._still_missing[key] = self._missing.get(key, self._now)
        wait = self._watch.poll_interval if self._watch.polling else _GONE_AFTER
        left = since + wait - self._now
        return left <= 0 or self._recheck(left)

    def _last_written(self, found: ScannedFile) -> float:
        before = self._waiting.get(found.key)
        if before is not None and before.signature == found.signature:
            return before.written
        modified, changed = found.signature[3:]
        dated = modified if modified <= self._wall else min(changed, self._wall)
        written = self._now - (self._wall - dated) / 1e9
        return written if before is None else max(written, before.at)

    def _is_known_complete(self, found: ScannedFile, written: float) -> bool:
        if self._watch.polling:
            return self._same_since(found) + self._watch.poll_interval <= self._now
        size = found.signature[2]
        return size > 0 and written <= self._watch.completed_at(os.path.realpath(found.key))

    def _same_since(self, found: ScannedFile) -> float:
        """When it was first seen as it is; what was complete in the scan before has always been."""
        before = self._waiting.get(found.key)
        if before is not None:
            return before.since if before.signature == found.signature else self._now
        seen = self._previous is not None and self._previous.get(found.key) == found.signature
        return -math.inf if seen else self._now

    def _recheck(self, seconds: float) -> bool:
        """Always False: not now."""
        self.recheck_in = min(self.recheck_in, max(seconds, _SOONEST))
        return False
