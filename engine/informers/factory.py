"""The informers of one source, by namespace: pods of the source, and run records."""

import threading
import time
from collections.abc import Iterable

from engine.decide.record import Record
from engine.informers.pods import PodInformer
from engine.informers.records import RecordInformer
from engine.informers.reflector import Reflector, WatchContext
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
