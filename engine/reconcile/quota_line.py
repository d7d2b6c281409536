"""Who waits for room in a quota: a line per namespace, in the order of submission.

When there may be room, only the first in line is called; if it gets in, the next one is called.
So the order is kept, and a thousand waiting jobs don't all ask at once. Each job keeps its own
back-off besides, so that a small one doesn't starve behind one that never fits.

A quota's controller counts from a cache: a pod that is created while it counts is missed, and the
quota lets one more in than it should. It counts whenever a pod ends, and pods often end together;
so a change of the quota is let settle before anybody is called.
"""

import threading
from collections.abc import Callable
from datetime import datetime

from engine.cluster import api
from engine.cluster.client import Client
from engine.errors import EngineError, ForbiddenError
from engine.informers.reflector import Watcher
from engine.refs import JobKey

SETTLE = 0.2


class QuotaLine:
    """Lines of all namespaces; safe to use from several threads.

    Guarantees: `call` is called with the first in line, and the seconds after which it may ask:
    SETTLE after a quota of its namespace has changed, and none after the one before got in.
    Without the right to watch quotas only back-off is left.
    """

    def __init__(
        self,
        client: Client,
        call: Callable[[JobKey, float], None],
        on_trouble: Callable[[str], None],
    ) -> None:
        self._client = client
        self._call = call
        self._on_trouble = on_trouble
        self._lock = threading.Lock()
        self._lines: dict[str, dict[JobKey, datetime]] = {}
        self._called: set[JobKey] = set()
        self._watchers: dict[str, Watcher | None] = {}

    def join(self, key: JobKey, since: datetime) -> None:
        """`key` was refused; it keeps the place that it has."""
        with self._lock:
            self._lines.setdefault(key.namespace, {}).setdefault(key, since)
            watched = key.namespace in self._watchers
            self._watchers.setdefault(key.namespace, None)
        if not watched:
            self._watch(key.namespace)

    def leave(self, key: JobKey) -> None:
        """`key` got in or gave up: the next one may have room as well."""
        with self._lock:
            line = self._lines.get(key.namespace, {})
            was_waiting = line.pop(key, None) is not None
        if was_waiting:
            self._room(key.namespace, 0.0)

    def is_called(self, key: JobKey) -> bool:
        """Whether it is `key`'s turn to ask again now; true once for each call."""
        with self._lock:
            called = key in self._called
            self._called.discard(key)
            return called

    def __len__(self) -> int:
        """How many jobs wait, in all namespaces."""
        with self._lock:
            return sum(len(line) for line in self._lines.values())

    @property
    def watchers(self) -> list[Watcher]:
        return [watcher for watcher in list(self._watchers.values()) if watcher is not None]

    def _room(self, namespace: str, settle: float = SETTLE) -> None:
        with self._lock:
            line = self._lines.get(namespace)
            if not line:
                return
            first = min(line, key=lambda key: (line[key], key))
            self._called.add(first)
        self._call(first, settle)

    def _watch(self, namespace: str) -> None:
        path = api.RESOURCE_QUOTAS.path(namespace)

        def sync() -> str:
            pages = api.list_all(self._client, path, "")
            self._room(namespace)
            return str(pages[0]["metadata"]["resourceVersion"])

        watcher = Watcher(
            self._client,
            path,
            "",
            sync=sync,
            on_event=lambda _, __: self._room(namespace),
            on_trouble=self._on_trouble,
            optional=True,
        )
        try:
            version = str(api.list_all(self._client, path, "")[0]["metadata"]["resourceVersion"])
        except ForbiddenError:
            return
        except EngineError:
            version = ""
        watcher.start(version)
        self._watchers[namespace] = watcher
