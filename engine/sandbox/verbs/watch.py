"""watch: changes as they happen, from a version on, with selectors, bookmarks and 410."""

from __future__ import annotations

import queue
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.sandbox import errors, kinds
from engine.sandbox.store import Change, Entry, encode, event_line
from engine.sandbox.verbs.table import table
from engine.sandbox.verbs.views import view_of, whole

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.sandbox.context import Context
    from engine.sandbox.kinds import Kind
    from engine.sandbox.selectors import Match
    from engine.sandbox.values import Obj

TICK = 0.5
_EARLY_BOOKMARK = 2.0
_DEFAULT_TIMEOUT = 30 * 60.0


@dataclass(frozen=True, slots=True)
class WatchQuery:
    """What a watch's query asks for."""

    namespace: str | None
    match: Match | None
    resource_version: str
    timeout: float
    bookmarks: bool
    initial_events: bool
    form: str
    close_after: int | None = None


class Closing:
    """Put into a watch's queue to end it, with an ERROR event or without a word."""

    def __init__(self, status: Obj | None = None) -> None:
        self.status = status


Item = Change | Closing


class WatchHub:
    """Hands every change to the watches of its kind."""

    def __init__(self, context: Context, bookmark_every: float = 60.0) -> None:
        self._context = context
        self._bookmark_every = bookmark_every
        self._watches: dict[str, set[queue.SimpleQueue[Item]]] = {
            kind.resource: set() for kind in kinds.ALL
        }
        context.storage.listen(self._on_change)

    def _on_change(self, change: Change) -> None:
        for waiting in self._watches[change.entry.kind.resource]:
            waiting.put(change)

    @property
    def open(self) -> int:
        """How many watches are open."""
        return sum(len(watches) for watches in self._watches.values())

    def close(self, resource: str | None = None, status: Obj | None = None) -> None:
        """End the open watches (of one resource): dropped, or with a Status such as 410."""
        with self._context.storage.lock:
            for name, watches in self._watches.items():
                if resource is None or resource == name:
                    for waiting in watches:
                        waiting.put(Closing(status))

    def stream(self, kind: Kind, query: WatchQuery) -> Iterator[bytes]:
        """Lines of watch events; an empty one now and then, so that a hang-up is noticed.

        Errors: 400 a version that isn't a number. One that is compacted is an ERROR event.
        """
        text = query.resource_version
        if text and not text.isdigit():
            why = f'strconv.ParseUint: parsing "{text}": invalid syntax'
            raise errors.bad_request(f'resourceVersion: Invalid value: "{text}": {why}')
        return self._stream(kind, query)

    def _stream(self, kind: Kind, query: WatchQuery) -> Iterator[bytes]:
        waiting: queue.SimpleQueue[Item] = queue.SimpleQueue()
        lines = _Lines(kind, query, self._context)
        watches = self._watches[kind.resource]
        storage = self._context.storage
        with storage.lock:
            start = storage.rv
            fresh = query.resource_version in ("", "0") or query.initial_events
            past = [] if fresh else storage.since(kind, int(query.resource_version))
            have = storage.entries(kind, query.namespace) if fresh else []
            watches.add(waiting)
        try:
            if past is None:
                message = f"too old resource version: {query.resource_version} ({start})"
                yield event_line("ERROR", encode(errors.expired(message).status()))
                return
            first = [lines.line("ADDED", entry) for entry in have if lines.fits(entry)]
            first += filter(None, map(lines.of, past))
            if query.initial_events and query.bookmarks:
                first.append(lines.bookmark(start, initial_end=True))
            # The reply's head goes out at once, events or not.
            yield b"".join(first)
            yield from self._follow(waiting, lines, query)
        finally:
            with storage.lock:
                watches.discard(waiting)

    def _follow(
        self, waiting: queue.SimpleQueue[Item], lines: _Lines, query: WatchQuery
    ) -> Iterator[bytes]:
        end = time.monotonic() + (query.timeout or _DEFAULT_TIMEOUT)
        next_bookmark = self._next_bookmark(end)
        while (now := time.monotonic()) < end:
            if query.bookmarks and now >= next_bookmark:
                next_bookmark = now + self._bookmark_every
                yield self._bookmark(waiting, lines)
            until = min(end, next_bookmark) if query.bookmarks else end
            try:
                items = [waiting.get(timeout=max(0.0, min(TICK, until - now)))]
            except queue.Empty:
                yield b""
                continue
            while not waiting.empty():
                items.append(waiting.get())
            batch = []
            for item in items:
                if isinstance(item, Closing):
                    if item.status is not None:
                        batch.append(event_line("ERROR", encode(item.status)))
                    yield b"".join(batch)
                    return
                if (line := lines.of(item)) is not None:
                    batch.append(line)
                    if query.close_after is not None and lines.sent >= query.close_after:
                        yield b"".join(batch)
                        return
            if batch:
                yield b"".join(batch)

    def _next_bookmark(self, end: float) -> float:
        """Every so often, and shortly before the end, as the real server does."""
        return min(time.monotonic() + self._bookmark_every, max(end - _EARLY_BOOKMARK, 0))

    def _bookmark(self, waiting: queue.SimpleQueue[Item], lines: _Lines) -> bytes:
        """Only when everything up to that version has been handed over already."""
        with self._context.storage.lock:
            return lines.bookmark(self._context.storage.rv) if waiting.empty() else b""


class _Lines:
    """Changes as one watch sees them: its namespace, its selectors, its form."""

    def __init__(self, kind: Kind, query: WatchQuery, context: Context) -> None:
        self._kind = kind
        self._query = query
        self._context = context
        self._view = view_of(query.form)
        self._headers = True
        self.sent = 0

    def fits(self, entry: Entry) -> bool:
        query = self._query
        if query.namespace is not None and entry.namespace != query.namespace:
            return False
        return query.match is None or query.match(entry.obj)

    def of(self, change: Change) -> bytes | None:
        """The change's line; an object that a selector begins or ceases to fit comes or goes."""
        now = self.fits(change.entry)
        before = change.previous is not None and self.fits(change.previous)
        if change.type == "DELETED":
            kind = "DELETED" if before else ""
        elif now:
            kind = "MODIFIED" if before else "ADDED"
        else:
            kind = "DELETED" if before else ""
        if not kind:
            return None
        if kind == change.type and self._view is whole and not self._query.form:
            self.sent += 1
            return change.line
        return self.line(kind, change.entry)

    def line(self, kind: str, entry: Entry) -> bytes:
        self.sent += 1
        if self._query.form == "Table":
            meta = {"resourceVersion": str(entry.rv)}
            raw = table(self._context, self._kind, [entry], meta, headers=self._headers).strip()
            self._headers = False
            return event_line(kind, raw)
        return event_line(kind, self._view(entry))

    def bookmark(self, rv: int, *, initial_end: bool = False) -> bytes:
        meta: Obj = {"resourceVersion": str(rv), "creationTimestamp": None}
        if initial_end:
            meta["annotations"] = {"k8s.io/initial-events-end": "true"}
        obj: Obj = {"kind": self._kind.kind, "apiVersion": self._kind.api_version, "metadata": meta}
        if self._query.form == "PartialObjectMetadata":
            obj.update(kind="PartialObjectMetadata", apiVersion="meta.k8s.io/v1")
        elif self._query.form == "Table":
            obj = {
                "kind": "Table",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": {"resourceVersion": str(rv)},
                "columnDefinitions": None,
                "rows": [],
            }
        return event_line("BOOKMARK", encode(obj))
