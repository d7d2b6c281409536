"""Detect files that are being written, and files that are removed only to be replaced."""

import math
import os
import time

from engine.specdir.scan import NO_SIGNATURE, ScannedFile, Signature

STILL_FOR = 1.0
"""Seconds without a change after which a file counts as complete, and a missing one as removed."""
_CONTENT = 4
"""The part of a signature that a write changes: without the time of the last change."""


class WriteDetector:
    """A file is complete if it was closed or moved into place, or is unchanged for a second.

    Git and some editors remove a file before they write the new one, so a missing file counts as
    removed after that second, too. `poll` is the interval of polling, which sees no file being
    closed: then an unchanged file has to be so for a whole interval.

    Events call `closed` and `opened`, from another thread. For each scan there is one `begin`,
    before the walk, and one question about each changed file.
    """

    def __init__(self, poll: float = 0.0) -> None:
        self.still_for = max(STILL_FOR, poll)
        """Seconds."""
        self.recheck_in = math.inf
        """Seconds until a file that was incomplete, or missing, is to be looked at again."""
        self._newly_closed: dict[str, Signature] = {}
        self._closed: dict[str, Signature] = {}
        self._unchanged: dict[str, tuple[Signature, float]] = {}
        """The signature of each file in question, and since when it is known."""
        self._unchanged_before: dict[str, tuple[Signature, float]] = {}
        self._now = -math.inf
        self._is_first = True

    def closed(self, path: str, signature: Signature) -> None:
        """The file at the real `path` was closed after a write, or moved there."""
        self._newly_closed[path] = signature

    def opened(self, path: str) -> None:
        """The file at the real `path` was created or written."""
        self._newly_closed.pop(path, None)

    def begin(self) -> None:
        """Start a scan: it sees at least what every event before this says."""
        self._is_first = self._now == -math.inf
        self._now = time.monotonic()
        self._closed, self._newly_closed = self._newly_closed, {}
        self._unchanged_before, self._unchanged = self._unchanged, {}
        self.recheck_in = math.inf

    def is_complete(self, found: ScannedFile) -> bool:
        """Whether no program is writing the file."""
        signature = found.signature
        if not signature:
            return True
        # A program that empties a file and closes it is about to write it, more often than not.
        is_empty = signature[2] == 0
        closed = self._closed.get(os.path.realpath(found.key), NO_SIGNATURE)
        if closed[:_CONTENT] == signature[:_CONTENT] and not is_empty:
            return True
        since = self._now
        if self._is_first or self.still_for == STILL_FOR:
            # The date of a local file is good evidence. A file server's clock may be behind ours,
            # so there it counts only for files that are older than the watch.
            since -= max(0.0, time.time() - signature[3] / 1e9)
        return self._is_unchanged(found.key, signature, since)

    def is_removed(self, key: str) -> bool:
        """Whether a missing file isn't about to come back."""
        return self._is_unchanged(key, NO_SIGNATURE, self._now)

    def _is_unchanged(self, key: str, signature: Signature, since: float) -> bool:
        before = self._unchanged_before.get(key)
        if before is not None and before[0] == signature:
            since = before[1]
        self._unchanged[key] = signature, since
        left = since + self.still_for - self._now
        if left > 0:
            self.recheck_in = min(self.recheck_in, left)
        return left <= 0
