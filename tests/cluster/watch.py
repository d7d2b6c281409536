"""Watch events kept in the order of their arrival, from before a test's action to its end."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from tests.cluster.paths import path_of, with_query

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from tests.cluster.client import Api, Object


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

    def __init__(self, api: Api, resource: str, namespace: str | None, labels: str | None) -> None:
        self._api = api
        self._path = path_of(resource, namespace)
        self._labels = labels
        self._changed = threading.Condition()
        self._events: list[Event] = []
        self._failure: str | None = None
        self._stopped = threading.Event()
        self._connection: http.client.HTTPConnection | None = None
        self._thread = threading.Thread(target=self._run, name=f"watch {resource}", daemon=True)
        self.before: list[Object] = []

    def __enter__(self) -> Self:
        response = self._api.request("GET", self._path, labelSelector=self._labels)
        if response.status != 200:
            raise ConnectionError(f"list {self._path}: {response.status} {response.message}")
        found = response.json()
        self.before = found["items"]
        self._version = str(found["metadata"]["resourceVersion"])
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stopped.set()
        while self._thread.is_alive():
            _hang_up(self._connection)
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
        query = {
            "watch": "true",
            "resourceVersion": self._version,
            "allowWatchBookmarks": "true",
            "labelSelector": self._labels,
        }
        self._connection = connection = self._api.connect(timeout=None)
        try:
            connection.request("GET", with_query(self._path, query), headers=self._api.headers())
            response = connection.getresponse()
            if response.status == 429 or response.status >= 500:
                self._stopped.wait(0.1)
            elif response.status != 200:
                self._fail(f"watch {self._path}: {response.status} {response.read()!r}")
            else:
                while line := response.readline():
                    self._take(json.loads(line))
        finally:
            connection.close()

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


def _hang_up(connection: http.client.HTTPConnection | None) -> None:
    """Wake a thread that waits for the next line."""
    if connection is not None and connection.sock is not None:
        with suppress(OSError):
            connection.sock.shutdown(socket.SHUT_RDWR)
