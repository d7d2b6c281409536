"""Keep a local picture of the engine's pods in one namespace: list once, then watch."""

import sys
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from engine.cluster import api
from engine.cluster.client import Client
from engine.informers.reflector import Watcher
from engine.refs import JobKey
from engine.status.deletion import UNSEEN, Deletion, read_deleted
from engine.status.outcome import Outcome
from engine.wellknown import JOB

_TOMBSTONES = 10_000
_SHORT = 64
_OVER = frozenset({"Succeeded", "Failed"})


class PodInformer:
    """All pods of one namespace that a label selector picks, by job.

    Guarantees: `on_change` is called with the job of every pod that appears, changes or goes, and
    a pod whose deletion was seen never comes back, however late a reply that still has it.
    Errors: `sync` raises what the list raises; the watch goes on by itself, with back-off.
    """

    def __init__(
        self,
        client: Client,
        namespace: str,
        selector: str,
        on_change: Callable[[JobKey], None],
        on_trouble: Callable[[str], None],
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._selector = selector
        self._on_change = on_change
        self._path = api.PODS.path(namespace)
        self._lock = threading.Lock()
        self._pods: dict[JobKey, dict[str, dict[str, Any]]] = {}
        self._dead: OrderedDict[str, Outcome | None] = OrderedDict()
        self._deletions: dict[str, Deletion] = {}
        self._version = ""
        self._synced = False
        self.watcher = Watcher(
            client,
            self._path,
            selector,
            sync=self.sync,
            on_event=self._take,
            on_trouble=on_trouble,
        )

    def sync(self) -> str:
        """Read every pod, page by page; what has changed or gone is reported. The version."""
        found: dict[JobKey, dict[str, dict[str, Any]]] = {}
        pages = api.list_all(self._client, self._path, self._selector)
        for page in pages:
            for pod in page["items"]:
                key = self._key(pod)
                if key is not None:
                    found.setdefault(key, {})[pod["metadata"]["uid"]] = _slim(pod)
        with self._lock:
            self._version = pages[0]["metadata"]["resourceVersion"]
            before = {key: dict(pods) for key, pods in self._pods.items()}
            self._take_over(found)
            changed = {key for key in {*before, *found} if before.get(key) != self._pods.get(key)}
            self._synced = True
        for key in changed:
            self._on_change(key)
        return self._version

    @property
    def has_synced(self) -> bool:
        return self._synced

    def start(self) -> None:
        """Watch from where `sync` ended, in a thread of its own; without one it begins there."""
        self.watcher.start(self._version)

    def pods(self, key: JobKey) -> tuple[dict[str, Any], ...]:
        with self._lock:
            return tuple(self._pods.get(key, {}).values())

    def all_pods(self) -> tuple[dict[str, Any], ...]:
        with self._lock:
            return tuple(pod for pods in self._pods.values() for pod in pods.values())

    def put(self, pod: dict[str, Any]) -> None:
        """Take in what a write answered, unless the watch already knows better."""
        key = self._key(pod)
        if key is not None:
            with self._lock:
                self._keep(key, pod)

    def refresh(self, key: JobKey) -> None:
        """Ask the API for the pods of one job, where the watch may be late to tell of them.

        Errors: those of the list.
        """
        selector = f"{self._selector},{JOB}={key.name}"
        for page in api.list_all(self._client, self._path, selector):
            for pod in page["items"]:
                self.put(pod)

    def forget(self, key: JobKey, uid: str) -> None:
        """The API says that this pod is gone."""
        with self._lock:
            self._bury(key, uid, self._pods.get(key, {}).get(uid))

    def deletion_of(self, uid: str) -> Deletion:
        """What was seen of the deletion of a pod that is still there."""
        with self._lock:
            return self._deletions.get(uid, UNSEEN)

    def end_of(self, uid: str) -> Outcome | None:
        """What the states of a pod that is gone told of its end."""
        with self._lock:
            return self._dead.get(uid)

    def _take(self, kind: str, pod: dict[str, Any]) -> None:
        key = self._key(pod)
        if key is None:
            return
        with self._lock:
            if kind == "DELETED":
                self._bury(key, pod["metadata"]["uid"], pod)
            else:
                self._keep(key, pod)
        self._on_change(key)

    def _take_over(self, found: dict[JobKey, dict[str, dict[str, Any]]]) -> None:
        """Make `found` the picture; what the list is too old to know of stays."""
        listed = api.version_number(self._version)
        for key, pods in [(key, dict(pods)) for key, pods in self._pods.items()]:
            for uid, pod in pods.items():
                if uid not in found.get(key, {}) and _version_of(pod) <= listed:
                    self._bury(key, uid, pod)
        for key, pods in found.items():
            for pod in pods.values():
                self._keep(key, pod)

    def _keep(self, key: JobKey, pod: dict[str, Any]) -> None:
        uid = pod["metadata"]["uid"]
        if uid in self._dead:
            return
        self._note_deletion(key, pod)
        known = self._pods.get(key, {}).get(uid)
        if known is None or _version_of(known) < _version_of(pod):
            kept = _slim(pod)
            is_over = (pod.get("status") or {}).get("phase") in _OVER
            self._pods.setdefault(key, {})[uid] = _shared(kept) if is_over else kept

    def _note_deletion(self, key: JobKey, pod: dict[str, Any]) -> None:
        """Whatever is seen of a deletion, in whichever order, tells when it was asked for."""
        uid = pod["metadata"]["uid"]
        deletion = self._deletions.get(uid, UNSEEN).seen(pod, self._pods.get(key, {}).get(uid))
        if deletion is not UNSEEN:
            self._deletions[uid] = deletion

    def _bury(self, key: JobKey, uid: str, last: dict[str, Any] | None) -> None:
        """`last` is the last state that is known of the pod."""
        end = self._dead.get(uid)
        if end is None and last is not None:
            self._note_deletion(key, last)
            end = read_deleted(last, self._deletions.get(uid, UNSEEN), gone=True)
        self._dead[uid] = end
        self._deletions.pop(uid, None)
        if len(self._dead) > _TOMBSTONES:
            self._dead.popitem(last=False)
        pods = self._pods.get(key, {})
        pods.pop(uid, None)
        if not pods:
            self._pods.pop(key, None)

    def _key(self, pod: dict[str, Any]) -> JobKey | None:
        name = (pod["metadata"].get("labels") or {}).get(JOB)
        return JobKey(self._namespace, name) if name else None


def _slim(pod: dict[str, Any]) -> dict[str, Any]:
    """Without the field owners' book-keeping, which is half of a pod."""
    pod["metadata"].pop("managedFields", None)
    return pod


def _shared(value: Any) -> Any:
    """The same, its short texts shared with all other pods: half the memory.

    Worth its time for a pod that is over: it stays until its TTL has passed, thousands of them do.
    """
    if isinstance(value, dict):
        return {sys.intern(name): _shared(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_shared(item) for item in value]
    if isinstance(value, str) and len(value) < _SHORT:
        return sys.intern(value)
    return value


def _version_of(pod: dict[str, Any]) -> int:
    return api.version_number(pod["metadata"].get("resourceVersion", ""))
