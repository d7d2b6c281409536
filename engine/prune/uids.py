"""A set of UIDs that takes eight bytes for each."""

from array import array
from bisect import bisect_left
from collections.abc import Iterable


class UidSet:
    """Membership by hash: a false yes is as likely as two random 64-bit numbers being equal.

    So it may only say that something need not be looked at.
    """

    def __init__(self) -> None:
        self._hashes = array("q")
        self._sorted = True

    def add(self, uids: Iterable[str]) -> None:
        self._hashes.extend(hash(uid) for uid in uids)
        self._sorted = False

    def __contains__(self, uid: str) -> bool:
        if not self._sorted:
            self._hashes = array("q", sorted(self._hashes))
            self._sorted = True
        place = bisect_left(self._hashes, hash(uid))
        return place < len(self._hashes) and self._hashes[place] == hash(uid)
