"""Watch events kept in the order of their arrival, from before a test's action to its end."""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self

from tests.support.client import Client, Watch

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Event:
    """`type` is ADDED, MODIFIED or DELETED; `at` is the monotonic time of arrival."""

    type: str
    object: Object
    at: float = field(default_factory=time.monotonic)

    @property
    def name(self) -> str:
        return str(self.object["metadata"]["name"])


class Recorder:
    """A watch in the background.

    Guarantees: once entered, no later event is missed, also not while the server restarts.
    What existed before isn't an event; it is in `before`.
    """

    def __init__(self, client: Client, path: str, labels: str | None) -> None:
        self._client = client
        self._path = path
        self._labels = labels
        self._changed = threading.Condition()
        self._events: list[Event] = []
        self._failure: str | None = None
        self._stopped = threading.Event()
        self._watch: Watch | None = None
        self._thread = threading.Thread(target=self._run, name=f"watch {path}", daemon=True)
        self.before: list[Object] = []

    def __enter__(self) -> Self:
        reply = self._client.get(self._path, labelSelector=self._labels)
        if reply.code != 200:
            raise ConnectionError(f"list {self._path}: {reply.code} {reply.message}")
        self.before = reply.body["items"]
        self._version = reply.rv
        self._thread.start()
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._stopped.set()
        while self._thread.is_alive():
            if self._watch is not None:
                self._watch.hang_up()
            self._thread.join(0.05)

    @property
    def events(self) -> list[Event]:
        with self._changed:
            return list(self._events)

    def of(self, name: str) -> list[Event]:
        return [event for event in self.events if event.name == name]

    def wait_for(
        self, wanted: Callable[[Event], bool], what: str = "event", timeout: float = 60.0
    ) -> Event:
        """The first event that is wanted, also if it has been.

        Errors: TimeoutError with all events so far; ConnectionError when the watch broke.
        """
        deadline = time.monotonic() + timeout
        with self._changed:
            while True:
                for event in self._events:
                    if wanted(event):
                        return event
                if self._failure:
                    raise ConnectionError(self._failure)
                left = deadline - time.monotonic()
                if left <= 0:
                    seen = [f"{event.type} {event.name}" for event in self._events]
                    raise TimeoutError(f"after {timeout:.0f} s no {what}; events: {seen}")
                self._changed.wait(left)

    def _run(self) -> None:
        while not self._stopped.is_set() and self._failure is None:
            try:
                self._follow()
            except (OSError, http.client.HTTPException, ValueError):
                self._stopped.wait(0.1)

    def _follow(self) -> None:
        """One watch request, from the last version seen until either side ends it."""
        query: dict[str, Any] = {
            "resourceVersion": self._version,
            "labelSelector": self._labels,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": None,
        }
        with self._client.watch(self._path, **query) as watch:
            self._watch = watch
            if watch.code == 429 or watch.code >= 500:
                self._stopped.wait(0.1)
            elif watch.code != 200:
                self._fail(f"watch {self._path}: {watch.code}")
            else:
                for event in watch:
                    self._take(event)

    def _take(self, message: Object) -> None:
        kind, found = str(message["type"]), message["object"]
        if kind == "ERROR":
            self._fail(f"watch {self._path}: {found.get('message')}")
            return
        self._version = str(found["metadata"]["resourceVersion"])
        if kind != "BOOKMARK":
            with self._changed:
                self._events.append(Event(kind, found))
                self._changed.notify_all()

    def _fail(self, failure: str) -> None:
        with self._changed:
            self._failure = failure
            self._changed.notify_all()
