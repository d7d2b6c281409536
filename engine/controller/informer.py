"""Keep a local picture of the engine's pods in one namespace: list once, then watch.

Written by hand because the client's own informer reconnects without a wait and has neither
paging nor a way to know when it has synced.
"""

import random
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from engine.cluster import objects
from engine.cluster.client import Client, Stream
from engine.controller.backoff import backoff
from engine.errors import EngineError, ExpiredError, UnreachableError
from engine.labels import JOB
from engine.refs import JobKey
from engine.status.deletion import read_deleted
from engine.status.outcome import Outcome

_WATCH_SECONDS = (240, 300)
_SILENCE = 330.0
_TOMBSTONES = 10_000
_FIRST_WAIT, _LONGEST_WAIT = 0.5, 30.0
_HEALTHY_AFTER = 1
_SHORTEST_WATCH = 1.0


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
        self._on_trouble = on_trouble
        self._path = objects.collection_path("Pod", namespace)
        self._lock = threading.Lock()
        self._pods: dict[JobKey, dict[str, dict[str, Any]]] = {}
        self._dead: OrderedDict[str, Outcome | None] = OrderedDict()
        self._version = ""
        self._stopped = threading.Event()
        self._stream: Stream | None = None
        self._thread: threading.Thread | None = None

    def sync(self) -> None:
        """Read every pod, page by page; what is no longer there is reported as changed."""
        found: dict[JobKey, dict[str, dict[str, Any]]] = {}
        version = ""
        for page in objects.list_whole(self._client, self._path, self._selector):
            version = version or page["metadata"]["resourceVersion"]
            for pod in page["items"]:
                key = self._key(pod)
                if key is not None:
                    found.setdefault(key, {})[pod["metadata"]["uid"]] = _slim(pod)
        with self._lock:
            before, self._pods, self._version = self._pods, found, version
            changed = {key for key in {*before, *found} if before.get(key) != found.get(key)}
        for key in changed:
            self._on_change(key)

    def start(self) -> None:
        """Watch from where `sync` ended, in a thread of its own."""
        name = f"watch-pods-{self._namespace}"
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        with self._lock:
            stream = self._stream
        if stream is not None:
            stream.close()
        if self._thread is not None:
            self._thread.join(2.0)

    def pods(self, key: JobKey) -> tuple[dict[str, Any], ...]:
        with self._lock:
            return tuple(self._pods.get(key, {}).values())

    def put(self, pod: dict[str, Any]) -> None:
        """Take in what a write answered, unless the watch already knows better."""
        key, uid = self._key(pod), pod["metadata"]["uid"]
        if key is None:
            return
        with self._lock:
            known = self._pods.get(key, {}).get(uid)
            if uid not in self._dead and (known is None or _version(known) < _version(pod)):
                self._pods.setdefault(key, {})[uid] = _slim(pod)

    def forget(self, key: JobKey, uid: str) -> None:
        """The API says that this pod is gone."""
        with self._lock:
            last = self._pods.get(key, {}).get(uid)
            self._bury(key, uid, read_deleted(last) if last else None)

    def end_of(self, uid: str) -> Outcome | None:
        """What the last state of a pod that is gone told of its end."""
        with self._lock:
            return self._dead.get(uid)

    def _run(self) -> None:
        tries = 0
        while not self._stopped.is_set():
            try:
                began = time.monotonic()
                self._watch()
                tries = 0 if time.monotonic() - began > _SHORTEST_WATCH else tries + 1
                if tries:
                    self._stopped.wait(backoff(tries, first=_FIRST_WAIT, longest=_LONGEST_WAIT))
            except ExpiredError:
                tries = self._again(self.sync, tries)
            except EngineError as error:
                if self._stopped.is_set():
                    return
                tries += 1
                if tries > _HEALTHY_AFTER or not isinstance(error, UnreachableError):
                    self._on_trouble(f"watch of pods in {self._namespace}: {error.cause}")
                self._stopped.wait(backoff(tries, first=_FIRST_WAIT, longest=_LONGEST_WAIT))
            except Exception as error:  # noqa: BLE001 - a watch that ends in silence blinds us
                self._on_trouble(f"watch of pods in {self._namespace}: {type(error).__name__}")
                tries = self._again(self.sync, tries + 1)

    def _again(self, sync: Callable[[], None], tries: int) -> int:
        try:
            sync()
        except EngineError as error:
            self._on_trouble(f"list of pods in {self._namespace}: {error.cause}")
            self._stopped.wait(backoff(tries + 1, first=_FIRST_WAIT, longest=_LONGEST_WAIT))
            return tries + 1
        return 0

    def _watch(self) -> None:
        seconds = random.randint(*_WATCH_SECONDS)
        query = [
            ("watch", "1"),
            ("allowWatchBookmarks", "true"),
            ("labelSelector", self._selector),
            ("resourceVersion", self._version),
            ("timeoutSeconds", str(seconds)),
        ]
        stream = self._client.stream(self._path, query, _SILENCE)
        with self._lock:
            self._stream = stream
        if self._stopped.is_set():
            stream.close()
            return
        for event in stream:
            self._take(event["type"], event["object"])

    def _take(self, kind: str, pod: dict[str, Any]) -> None:
        metadata = pod["metadata"]
        self._version = metadata["resourceVersion"]
        if kind == "BOOKMARK":
            return
        key = self._key(pod)
        if key is None:
            return
        with self._lock:
            if kind == "DELETED":
                self._bury(key, metadata["uid"], read_deleted(pod))
            elif metadata["uid"] not in self._dead:
                known = self._pods.get(key, {}).get(metadata["uid"])
                if known is None or _version(known) < _version(pod):
                    self._pods.setdefault(key, {})[metadata["uid"]] = _slim(pod)
        self._on_change(key)

    def _bury(self, key: JobKey, uid: str, end: Outcome | None) -> None:
        self._dead[uid] = self._dead.get(uid) or end
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


def _version(pod: dict[str, Any]) -> int:
    """Versions are opaque by contract, and ordered numbers in every server there is (KEP-5504)."""
    text = pod["metadata"].get("resourceVersion", "")
    return int(text) if text.isdigit() else 0
