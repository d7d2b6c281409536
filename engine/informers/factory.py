"""The informers of one source, by namespace: pods of the source, and run records."""

import threading
import time
from collections.abc import Collection, Iterable

from engine.informers.pods import PodInformer
from engine.informers.records import RecordInformer
from engine.informers.reflector import Reflector, WatchContext
from engine.lifecycle.record import Record
from engine.wellknown import MANAGED_BY, MANAGER, SOURCE

_STOP_TIMEOUT = 1.0


class InformerFactory:
    """Safe to use from several threads.

    Guarantees: nothing is watched before `start`.
    """

    def __init__(self, context: WatchContext, source: str) -> None:
        self._context = context
        self._source = source
        self._selector = f"{MANAGED_BY}={MANAGER},{SOURCE}={source}"
        self._lock = threading.Lock()
        self._pods: dict[str, PodInformer] = {}
        self._records: dict[str, RecordInformer] = {}

    def pods(self, namespace: str) -> PodInformer:
        """Of a namespace that was listed or started."""
        return self._pods[namespace]

    def records(self, namespace: str) -> RecordInformer:
        """Of a namespace that was listed or started."""
        return self._records[namespace]

    @property
    def namespaces(self) -> tuple[str, ...]:
        """Every one that was listed or started."""
        return tuple(self._pods)

    def list_all(self, namespaces: Iterable[str]) -> None:
        """Read all records, then all pods: a pod that is in a record can't be missed so.

        Errors: what the lists raise.
        """
        wanted = tuple(namespaces)
        for namespace in wanted:
            self._add(namespace)
        for namespace in wanted:
            self._records[namespace].list()
        for namespace in wanted:
            self._pods[namespace].list()

    def start(self, namespace: str) -> None:
        """List and watch pods and records, in threads, if that isn't done yet."""
        self._add(namespace)
        self._records[namespace].start()
        self._pods[namespace].start()

    def remove(self, namespace: str) -> None:
        """Watch there no longer, and forget what was read."""
        with self._lock:
            records, pods = self._records.pop(namespace, None), self._pods.pop(namespace, None)
        for informer in (records, pods):
            if informer is not None:
                informer.reflector.stop()

    def has_synced(self, namespace: str) -> bool:
        """Whether pods and records of a namespace have been read."""
        records, pods = self._records.get(namespace), self._pods.get(namespace)
        return bool(records and pods and records.has_synced and pods.has_synced)

    def own_records(self) -> list[Record]:
        """The source's records in every namespace that has been read."""
        return [
            record
            for namespace in self.namespaces
            if self.has_synced(namespace)
            for record in self.records(namespace).all_records()
            if record.source == self._source
        ]

    def is_failing(self, namespace: str) -> bool:
        """Whether pods or records of a namespace can't be read now, and have not been before."""
        informers = (self._records.get(namespace), self._pods.get(namespace))
        return not self.has_synced(namespace) and any(i and i.reflector.failing for i in informers)

    def is_refused(self, namespace: str) -> bool:
        """Whether `is_failing`, and because it may not be read."""
        informers = (self._records.get(namespace), self._pods.get(namespace))
        refused = any(i and i.reflector.failing and i.reflector.refused for i in informers)
        return refused and self.is_failing(namespace)

    def reflectors(self) -> list[Reflector]:
        """Those of all informers."""
        with self._lock:
            records = [informer.reflector for informer in self._records.values()]
            return [*records, *(informer.reflector for informer in self._pods.values())]

    def _add(self, namespace: str) -> None:
        with self._lock:
            if namespace not in self._pods:
                self._records[namespace] = RecordInformer(self._context, namespace)
                self._pods[namespace] = PodInformer(self._context, namespace, self._selector)


def stop_all(reflectors: Iterable[Reflector]) -> None:
    """Ask all to end, and wait a moment."""
    stopping = list(reflectors)
    for reflector in stopping:
        reflector.stop()
    deadline = time.monotonic() + _STOP_TIMEOUT
    for reflector in stopping:
        reflector.join(deadline - time.monotonic())


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

        It waits neither for a namespace that comes later nor, beside others that are read, for one
        that may not be read. Otherwise an author of specs could keep an engine from service.
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
