"""The informers of one source, by namespace: pods of the source, and run records."""

import threading
import time
from collections.abc import Collection, Iterable, Sequence
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING

from msgspec import Struct, field

from engine.cluster.records import CONFIG_MAP_RECORDS, STATUS_RECORDS, RecordStore
from engine.informers.informer import MAX_NAMES, Manifest, of_jobs
from engine.informers.pods import PodInformer
from engine.informers.records import RecordInformer
from engine.informers.reflector import Reflector, WatchContext
from engine.lifecycle.record import Record
from engine.refs import JobKey
from engine.wellknown import MANAGED_BY, MANAGER, SOURCE

if TYPE_CHECKING:
    from engine.informers.job_specs import SpecInformer, SpecObject

_STOP_TIMEOUT = 1.0


class InformerFactory(Struct, eq=False):
    """Safe to use from several threads; `watch` and `drop` are for one.

    Guarantees: nothing is watched before `watch`.
    """

    context: WatchContext
    source: str
    store: RecordStore = CONFIG_MAP_RECORDS
    has_specs: bool = False
    """Whether it is known which namespaces the specs name."""
    is_ready: bool = False
    """Whether all that they named at first have been read."""
    specs: dict[str, "SpecInformer"] = {}
    """The informers of JobSpec objects, by namespace, or for all: they have the records."""
    defaults: Sequence["SpecInformer"] = ()
    """Those of JobDefaults objects."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _informers: dict[str, tuple[RecordInformer, PodInformer]] = {}
    _unsynced: set[str] = set()
    """Watched namespaces that were not read when they were last looked at."""

    def records(self, namespace: str) -> RecordInformer:
        """Of a namespace that was listed or watched."""
        return self._informers[namespace][0]

    def spec_of(self, key: JobKey) -> "SpecObject | None":
        """The JobSpec object of this name; None for a file."""
        informer = self._specs(key.namespace)
        return informer.spec_of(key) if informer is not None else None

    def _specs(self, namespace: str) -> "SpecInformer | None":
        return self.specs.get(namespace) or self.specs.get("")

    def pods(self, namespace: str) -> PodInformer:
        """Of a namespace that was listed or watched."""
        return self._informers[namespace][1]

    @property
    def namespaces(self) -> tuple[str, ...]:
        """Every one that was listed or watched."""
        return tuple(self._informers)

    def list_jobs(self, namespace: str, names: Collection[str], others: str | None) -> None:
        """Read the records of these jobs, those that the selector `others` picks, and all pods.

        Without `others` no more is read of many jobs than of few: a source's history isn't.
        Pods come last: one that is in a record can't be missed so. Errors: what the lists raise.
        """
        records, pods = self._add(namespace)
        if self.store is STATUS_RECORDS:
            records.list()
        else:
            few = others is None and len(names) <= MAX_NAMES
            records.list(of_jobs(names) if few else others or "")
        if others:
            known = {record.key.name for record in records.all_records()}
            records.refresh({*names} - known)
        pods.list()

    def watch(self, namespace: str) -> None:
        """List and watch pods and records, in threads, if that isn't done yet."""
        informers = self._add(namespace)
        if not self.has_synced(namespace):
            self._unsynced.add(namespace)
        for informer in informers:
            informer.start()

    def drop(self, namespaces: Collection[str]) -> None:
        """Watch no longer those of them that could never be read, and forget them."""
        for name in sorted(self._unsynced.intersection(namespaces)):
            if not self.has_synced(name):  # nor had been when it was last looked at
                self._unsynced.discard(name)
                for informer in self._informers.pop(name):
                    if informer not in self.specs.values():
                        informer.reflector.stop()

    def has_synced(self, namespace: str) -> bool:
        """Whether pods and records of a namespace have been read."""
        found = self._informers.get(namespace)
        return found is not None and all(map(attrgetter("has_synced"), found))

    def has_objects(self, namespace: str) -> bool:
        """Whether anything was found in a namespace, which exists then."""
        return any(informer.all_items() for informer in self._informers[namespace])

    def own_records(self) -> list[Record]:
        """The source's records in every namespace that has been read."""
        return [
            record
            for namespace in filter(self.has_synced, self.namespaces)
            for record in self.records(namespace).all_records()
            if record.source == self.source and record.key.namespace == namespace
        ]

    def all_pods(self) -> list[Manifest]:
        """The source's pods in every namespace that was listed or watched."""
        return [pod for name in self.namespaces for pod in self.pods(name).all_items()]

    def is_failing(self, namespace: str, *, refused: bool = False) -> bool:
        """Whether pods or records of a namespace can't be read now, and have not been before.

        `refused`: because they may not be read.
        """
        reflectors = [informer.reflector for informer in self._informers.get(namespace, ())]
        failing = any(one.failing and one.refused >= refused for one in reflectors)
        return failing and not self.has_synced(namespace)

    def reflectors(self) -> list[Reflector]:
        """Those of all informers."""
        found = [
            *self.specs.values(),
            *self.defaults,
            *chain.from_iterable(tuple(self._informers.values())),
        ]
        return [informer.reflector for informer in dict.fromkeys(found)]

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

    def newly_synced(self) -> set[str]:
        """Those that have been read since the last call."""
        with self._lock:
            synced = set(filter(self.has_synced, tuple(self._unsynced)))
            self._unsynced -= synced
        return synced

    def becomes_ready(self) -> bool:
        """Whether it is ready from now on and hasn't been before."""
        if self.is_ready or not self.has_specs or self._awaited():
            return False
        self.is_ready = True
        return True

    def _awaited(self) -> set[str]:
        unsynced = set(self._unsynced)
        refused = {name for name in unsynced if self.is_failing(name, refused=True)}
        return refused if refused.issuperset(self.namespaces) else unsynced - refused

    def _add(self, namespace: str) -> tuple[RecordInformer, PodInformer]:
        with self._lock:
            if namespace not in self._informers:
                selector = f"{MANAGED_BY}={MANAGER},{SOURCE}={self.source}"
                if self.store is STATUS_RECORDS and self._specs(namespace) is None:
                    from engine.informers.job_specs import SpecInformer  # noqa: PLC0415 - if needed

                    self.specs[namespace] = SpecInformer(self.context, namespace)
                self._informers[namespace] = (
                    self._specs(namespace) or RecordInformer(self.context, self.store, namespace),
                    PodInformer(self.context, namespace, selector),
                )
            return self._informers[namespace]


def stop_all(reflectors: Iterable[Reflector]) -> None:
    """Ask all to end, and wait a moment."""
    stopping = list(reflectors)
    for reflector in stopping:
        reflector.stop()
    deadline = time.monotonic() + _STOP_TIMEOUT
    for reflector in stopping:
        reflector.join(deadline - time.monotonic())
