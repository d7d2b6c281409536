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
from functools import partial
from typing import Any

from msgspec import Struct, field

from engine.cluster import api
from engine.informers.reflector import Reflector, WatchContext
from engine.refs import JobKey

SETTLE_SECONDS = 0.2


class QuotaQueue(Struct, eq=False):
    """Lines of all namespaces; safe to use from several threads.

    Guarantees: `wake` is called with the first in line, and the seconds after which it may ask:
    SETTLE_SECONDS after a quota of its namespace has changed, and none after the one before got in.
    Without the right to watch quotas only back-off is left.
    """

    context: WatchContext
    wake: Callable[[JobKey, float], None]
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _lines: dict[str, dict[JobKey, datetime]] = {}
    """By namespace, who waits and since when."""
    _called: set[JobKey] = set()
    """Whose turn it is to ask again."""
    _reflectors: dict[str, Reflector] = {}

    def enqueue(self, key: JobKey, since: datetime) -> None:
        """`key` was refused; it keeps the place that it has."""
        namespace = key.namespace
        with self._lock:
            self._lines.setdefault(namespace, {}).setdefault(key, since)
            if namespace not in self._reflectors:
                self._reflectors[namespace] = reflector = Reflector(
                    self.context,
                    api.RESOURCE_QUOTAS.path(namespace),
                    "",
                    list_=partial(self._list, namespace),
                    on_event=partial(self._on_event, namespace),
                    optional=True,
                )
                reflector.start("")

    def dequeue(self, key: JobKey) -> None:
        """`key` got in or gave up: the next one may have room as well."""
        with self._lock:
            line = self._lines.get(key.namespace, {})
            was_waiting = line.pop(key, None) is not None
        if was_waiting:
            self._wake_first(key.namespace, 0.0)

    def take_turn(self, key: JobKey) -> bool:
        """Whether it is `key`'s turn to ask again now; true once for each call."""
        with self._lock:
            called = key in self._called
            self._called.discard(key)
            return called

    def __len__(self) -> int:
        """How many jobs wait, in all namespaces."""
        with self._lock:
            return sum(len(line) for line in self._lines.values())

    def reflectors(self) -> list[Reflector]:
        """One for each namespace whose quotas are watched."""
        return list(self._reflectors.values())

    def _wake_first(self, namespace: str, after: float) -> None:
        with self._lock:
            line = self._lines.get(namespace)
            if not line:
                return
            first = min(line, key=lambda key: (line[key], key))
            self._called.add(first)
        self.wake(first, after)

    def _list(self, namespace: str) -> str:
        pages = api.list_all(self.context.client, api.RESOURCE_QUOTAS.path(namespace), "")
        self._wake_first(namespace, SETTLE_SECONDS)
        return str(pages[0]["metadata"]["resourceVersion"])

    def _on_event(self, namespace: str, kind: str, quota: dict[str, Any]) -> None:
        del kind, quota
        self._wake_first(namespace, SETTLE_SECONDS)
