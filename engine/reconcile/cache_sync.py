"""Which namespaces a controller watches, and what of them is yet to be read."""

from collections.abc import Collection

from engine.informers.factory import InformerFactory


class CacheSync:
    """The namespaces of the specs, and those that only have records of them.

    `watch` and `drop` are for one thread, `newly_synced` for another.
    """

    def __init__(self, informers: InformerFactory) -> None:
        self.has_specs = False
        """Whether it is known which namespaces the specs name."""
        self.is_ready = False
        """Whether all that they named at first have been read."""
        self._informers = informers
        self._unsynced: set[str] = set()

    @property
    def waits(self) -> bool:
        """Whether anything is yet to be read."""
        return bool(self._unsynced) or not self.is_ready

    @property
    def unread(self) -> str:
        """What is yet to be read before it is ready.

        Waited for is neither a namespace that comes later, nor, beside others that are read, one
        that may not be: whoever writes specs could else keep an engine from service.
        """
        if self.is_ready:
            return ""
        return ", ".join(sorted(self._awaited())) or "which jobs there are"

    def watch(self, namespace: str) -> None:
        """List and watch pods and records of a namespace, if that isn't done yet."""
        self._informers.start(namespace)
        if not self._informers.has_synced(namespace):
            self._unsynced.add(namespace)

    def drop(self, namespaces: Collection[str]) -> None:
        """Watch no longer those of them that could never be read."""
        for name in sorted(self._unsynced.intersection(namespaces)):
            self._unsynced.discard(name)
            self._informers.remove(name)

    def newly_synced(self) -> set[str]:
        """Those that have been read since the last call."""
        synced = {name for name in tuple(self._unsynced) if self._informers.has_synced(name)}
        self._unsynced -= synced
        return synced

    def becomes_ready(self) -> bool:
        """Whether it is ready from now on and hasn't been before."""
        if self.is_ready or not self.has_specs or self._awaited():
            return False
        self.is_ready = True
        return True

    def _awaited(self) -> set[str]:
        refused = {name for name in tuple(self._unsynced) if self._informers.is_refused(name)}
        if refused.issuperset(self._informers.namespaces):
            return set(refused)
        return self._unsynced - refused
