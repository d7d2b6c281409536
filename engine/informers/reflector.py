"""One watch in a thread of its own that goes on until it is stopped.

Written by hand because the client's own informer reconnects without a wait and has neither
paging nor a way to know when it has synced.
"""

import random
import threading
import time
from collections.abc import Callable
from typing import Any

from engine.cluster.client import Client, WatchStream
from engine.cluster.transport import JSON
from engine.errors import EngineError, ExpiredError, ForbiddenError, UnreachableError
from engine.runtime.backoff import backoff

_WATCH_SECONDS = (240, 300)
_SILENCE = 330.0
_FIRST_WAIT, _LONGEST_WAIT = 0.5, 10.0
_SHORTEST_WATCH = 1.0


class Watcher:
    """Watches `path` from the version that `sync` returns.

    Guarantees: `on_event` gets every event but bookmarks, in order; after a version has expired,
    or anything unforeseen, `sync` is called again before the watch goes on: at once, unless a new
    version expires at once, too. Reconnects with back-off and jitter; `failing` has the last
    failure's words for as long as nothing is heard.
    Errors: none; the second failure in a row is told to `on_trouble`. An `optional` watch ends in
    silence where the right to it is missing.
    """

    def __init__(
        self,
        client: Client,
        path: str,
        selector: str,
        *,
        sync: Callable[[], str],
        on_event: Callable[[str, dict[str, Any]], None],
        on_trouble: Callable[[str], None],
        accept: str = JSON,
        optional: bool = False,
    ) -> None:
        self._client = client
        self.path = path
        self._selector = selector
        self._sync = sync
        self._on_event = on_event
        self._on_trouble = on_trouble
        self._accept = accept
        self._optional = optional
        self._version = ""
        self.restarts = 0
        self.failing = ""
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._stream: WatchStream | None = None
        self._thread: threading.Thread | None = None

    def start(self, version: str) -> None:
        """Watch from `version`; from what `sync` returns where there is none."""
        self._version = version
        self._thread = threading.Thread(target=self._run, name=f"watch {self.path}", daemon=True)
        self._thread.start()

    def halt(self) -> None:
        """Ask the thread to end, without waiting for it."""
        self._stopped.set()
        with self._lock:
            stream = self._stream
        if stream is not None:
            stream.close()

    def join(self, seconds: float) -> None:
        """Wait for the thread to end, no longer than `seconds`."""
        if self._thread is not None:
            self._thread.join(seconds)

    def _run(self) -> None:
        failures = 0
        while not self._stopped.is_set():
            began = time.monotonic()
            try:
                if not self._version:
                    self._version = self._sync()
                self._watch()
                self.restarts += 1
                failures = 0 if time.monotonic() - began > _SHORTEST_WATCH else failures + 1
            except ExpiredError:
                self._version = ""
                failures = 0 if time.monotonic() - began > _SHORTEST_WATCH else failures + 1
                if failures <= 1:
                    continue
            except ForbiddenError as error:
                if self._optional:
                    return
                failures += 1
                self._tell(failures, error.cause, expected=False)
            except EngineError as error:
                failures += 1
                self._tell(failures, error.cause, isinstance(error, UnreachableError))
            except Exception as error:  # noqa: BLE001 - a watch that ends in silence blinds us
                failures += 1
                self._version = ""
                self._tell(failures, f"{type(error).__name__}: {error}", expected=False)
            if failures:
                self._stopped.wait(backoff(failures, first=_FIRST_WAIT, longest=_LONGEST_WAIT))

    def _tell(self, failures: int, words: str, expected: bool) -> None:
        """A connection that breaks once is no news."""
        self.failing = words
        if not self._stopped.is_set() and (failures > 1 or not expected):
            self._on_trouble(f"watch of {self.path}: {words}")

    def _watch(self) -> None:
        query = [
            ("watch", "1"),
            ("allowWatchBookmarks", "true"),
            ("labelSelector", self._selector),
            ("resourceVersion", self._version),
            ("timeoutSeconds", str(random.randint(*_WATCH_SECONDS))),
        ]
        stream = self._client.stream(self.path, query, _SILENCE, accept=self._accept)
        self.failing = ""
        with self._lock:
            self._stream = stream
        if self._stopped.is_set():
            stream.discard()
            return
        for event in stream:
            self._version = event["object"]["metadata"]["resourceVersion"]
            if event["type"] != "BOOKMARK":
                self._on_event(event["type"], event["object"])
