"""Lists and watches one resource in a thread of its own, until it is stopped.

Written by hand because the client's own informer reconnects without a wait and has neither
paging nor a way to know when it has synced.
"""

import random
import threading
import time
from collections.abc import Callable
from typing import Any

from msgspec import Struct, field

from engine.cluster.client import Client, WatchStream
from engine.errors import EngineError, ExpiredError, ForbiddenError, UnreachableError
from engine.refs import JobKey
from engine.runtime.retry import backoff
from engine.runtime.supervisor import SupervisedThread, Supervisor
from engine.telemetry.events import Emit, ErrorReported, Notice

_WATCH_SECONDS = (240, 300)
_READ_TIMEOUT = 330.0
_STALL_TIMEOUT = 600.0
_FIRST_WAIT, _LONGEST_WAIT = 0.5, 10.0
_REPORT_AGAIN_AFTER = 300.0
_SHORTEST_WATCH = 1.0


class WatchContext(Struct, frozen=True):
    """What all watches of an engine have in common."""

    client: Client
    supervisor: Supervisor
    on_change: Callable[[JobKey], None]
    """Gets the job of what has changed."""
    on_error: Callable[[str], None]
    """Gets a line for each failure that is news."""
    on_list: Callable[[], object] = bool
    """Called after every list: jobs may wait for it."""


class Reflector(Struct, eq=False):
    """Watches `path` from the version that `list_` returns.

    Guarantees: `on_event` gets every event but bookmarks, in order; after a version has expired,
    or anything unforeseen, `list_` is called again before the watch goes on: at once, unless a new
    version expires at once, too. Reconnects with back-off and jitter, and no sooner than the server
    asks for. Where it may list but not watch, it lists from time to time. An event or a list that
    raises is the supervisor's to report.
    Errors: none; the second failure in a row goes to the context's `on_error`. An `optional`
    watch ends in silence where the right to it is missing.
    """

    context: WatchContext
    path: str
    selector: str
    list_: Callable[[], str]
    on_event: Callable[[str, dict[str, Any]], None]
    optional: bool = False
    restarts: int = 0
    """How often a watch was opened again."""
    failing: str = ""
    """The last failure's words, for as long as nothing is heard."""
    refused: bool = False
    """Whether what fails is that this may not be read."""
    _version: str = ""
    """From where to watch; "" to list first."""
    _failures: int = 0
    _stopped: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _stream: WatchStream | None = None
    _thread: SupervisedThread | None = None

    def start(self, version: str) -> None:
        """Watch from `version`; from what `list_` returns where there is none.

        Once it is started, nothing happens.
        """
        with self._lock:
            if self._thread is None:
                self._version = version
                self._thread = self.context.supervisor.start(f"watch of {self.path}", self._run)

    def stop(self) -> None:
        """Ask the thread to end, without waiting for it."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.stop()
        with self._lock:
            stream = self._stream
        if stream is not None:
            stream.close()

    def join(self, seconds: float) -> None:
        """Wait for the thread to end, no longer than `seconds`."""
        if self._thread is not None:
            self._thread.join(seconds)

    def _run(self, thread: SupervisedThread) -> None:
        while not self._stopped.is_set():
            began, wait = time.monotonic(), 0.0
            thread.expect(_STALL_TIMEOUT)
            try:
                if not self._version:
                    self._version = self.list_()
                self._watch(thread)
                self.restarts += 1
                self._ended(began)
            except ExpiredError:
                self._version = ""
                self._ended(began)
                if self._failures <= 1:
                    continue
            except ForbiddenError as error:
                if self.optional:
                    return
                self._version = ""
                self._failed(error, expected=False)
            except EngineError as error:
                self._failed(error, expected=isinstance(error, UnreachableError))
                wait = error.retry_after
            except Exception as error:
                self._version, self.failing = "", f"{type(error).__name__}: {error}"
                self.refused = False
                raise
            if self._failures:
                own = backoff(self._failures, first=_FIRST_WAIT, longest=_LONGEST_WAIT)
                thread.expect(_STALL_TIMEOUT + wait)
                self._stopped.wait(max(own, wait))

    def _ended(self, began: float) -> None:
        """A watch that ends at once, and so again and again, counts as failed."""
        lasted = time.monotonic() - began > _SHORTEST_WATCH
        self._failures = 0 if lasted else self._failures + 1

    def _failed(self, error: EngineError, *, expected: bool) -> None:
        """A connection that breaks once is no news."""
        self._failures += 1
        self.failing, self.refused = error.cause, isinstance(error, ForbiddenError)
        if not self._stopped.is_set() and (self._failures > 1 or not expected):
            self.context.on_error(f"watch of {self.path}: {error.cause}")

    def _watch(self, thread: SupervisedThread) -> None:
        query = [
            ("watch", "1"),
            ("allowWatchBookmarks", "true"),
            ("labelSelector", self.selector),
            ("resourceVersion", self._version),
            ("timeoutSeconds", str(random.randint(*_WATCH_SECONDS))),
        ]
        stream = self.context.client.stream(self.path, query, _READ_TIMEOUT)
        self.failing = ""
        with self._lock:
            self._stream = stream
        if self._stopped.is_set():
            stream.close()
        for event in stream:
            thread.expect(_STALL_TIMEOUT)
            self._version = event["object"]["metadata"]["resourceVersion"]
            if event["type"] != "BOOKMARK":
                self.on_event(event["type"], event["object"])


class WatchErrorReporter(Struct):
    """Sums up the errors of reflectors. Safe to use from several threads.

    An error in other words is reported at once, the same one every five minutes.
    """

    emit: Emit
    clock: Callable[[], float] = time.monotonic
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _since: float | None = None
    _reported: dict[str, float] = {}

    def __call__(self, message: str) -> None:
        """Report an error, unless its like was reported a moment ago."""
        words, now = message.partition(": ")[2] or message, self.clock()
        with self._lock:
            self._since = now if self._since is None else self._since
            if now - self._reported.get(words, -_REPORT_AGAIN_AFTER) < _REPORT_AGAIN_AFTER:
                return
            self._reported[words] = now
        self.emit(ErrorReported(None, message, retrying=True))

    def recovered(self) -> None:
        """Every watch hears its server."""
        with self._lock:
            since, self._since = self._since, None
            self._reported.clear()
        if since is not None:
            away = self.clock() - since
            self.emit(Notice(f"the watches of the cluster are back after {away:.0f} s"))
