"""All that a reconciler hears of the cluster: pods, records and quotas."""

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from engine.cluster.client import Client
from engine.informers.informer import PodInformer
from engine.informers.record_informer import RecordInformer
from engine.informers.reflector import Watcher
from engine.reconcile.quota_line import QuotaLine
from engine.refs import JobKey
from engine.wellknown import MANAGED_BY, MANAGER, SOURCE

_LONGEST_STOP = 1.0


@dataclass(frozen=True, slots=True)
class Listeners:
    """`changed` gets the job whose pod or record changed, `called` the one whose turn it is to ask
    a quota again, with the seconds until then.
    """

    changed: Callable[[JobKey], None]
    called: Callable[[JobKey, float], None]
    trouble: Callable[[str], None]


class Watches:
    """Informers and watches of one source in some namespaces.

    Guarantees: nothing is watched before `listen` or `follow`; every thread ends with `stop`.
    Errors: `sync` raises what the lists raise.
    """

    def __init__(
        self, client: Client, source: str, namespaces: Iterable[str], listeners: Listeners
    ) -> None:
        self._client = client
        self._listeners = listeners
        self._selector = f"{MANAGED_BY}={MANAGER},{SOURCE}={source}"
        self.line = QuotaLine(client, listeners.called, listeners.trouble)
        self._pods = {namespace: self._informer(namespace) for namespace in namespaces}
        self._records: dict[str, RecordInformer] = {}
        self._heard: set[str] = set()
        self._lock = threading.Lock()

    def pods(self, namespace: str) -> PodInformer:
        return self._pods[namespace]

    def records(self, namespace: str) -> RecordInformer:
        """Of a namespace that is followed."""
        return self._records[namespace]

    @property
    def namespaces(self) -> tuple[str, ...]:
        return tuple(self._pods)

    def sync(self) -> None:
        """Read all pods, namespace by namespace."""
        for informer in self._pods.values():
            informer.sync()

    def listen(self, namespace: str) -> None:
        """Watch the pods of `namespace` from where `sync` ended, if that isn't done yet."""
        with self._lock:
            if namespace in self._heard:
                return
            self._heard.add(namespace)
        self._pods[namespace].start()

    def follow(self, namespace: str) -> None:
        """List and watch pods and records of `namespace`, in threads, if that isn't done yet."""
        if namespace in self._pods:
            return
        listeners = self._listeners
        records = RecordInformer(self._client, namespace, listeners.changed, listeners.trouble)
        pods = self._informer(namespace)
        with self._lock:
            self._records[namespace], self._pods[namespace] = records, pods
        records.start()
        pods.start()

    def unfollow(self, namespace: str) -> None:
        """Listen there no longer, and forget what was heard."""
        with self._lock:
            records, pods = self._records.pop(namespace, None), self._pods.pop(namespace, None)
        for informer in (records, pods):
            if informer is not None:
                informer.watcher.halt()

    def has_synced(self, namespace: str) -> bool:
        """Whether pods and records of a namespace that is followed have been read."""
        records, pods = self._records.get(namespace), self._pods.get(namespace)
        return bool(records and pods and records.has_synced and pods.has_synced)

    @property
    def failing(self) -> list[str]:
        """A line for each watch that hears nothing at the moment."""
        return [f"{w.path}: {w.failing}" for w in self.watchers() if w.failing]

    def watchers(self) -> list[Watcher]:
        with self._lock:
            records = [informer.watcher for informer in self._records.values()]
            pods = [informer.watcher for informer in self._pods.values()]
        return [*records, *pods, *self.line.watchers]

    def stop(self) -> None:
        """End every thread; one that doesn't notice in time is left to the process's end."""
        watchers = self.watchers()
        for watcher in watchers:
            watcher.halt()
        deadline = time.monotonic() + _LONGEST_STOP
        for watcher in watchers:
            watcher.join(max(0.0, deadline - time.monotonic()))

    def _informer(self, namespace: str) -> PodInformer:
        listeners = self._listeners
        return PodInformer(
            self._client, namespace, self._selector, listeners.changed, listeners.trouble
        )
