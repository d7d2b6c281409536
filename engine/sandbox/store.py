"""What is stored: versions of objects under one global, growing resource version, as in etcd.

One lock guards everything; listeners (quotas, garbage collector, node, watches) hear of each change
under it, in order, and must only note what to do later.
"""

from __future__ import annotations

import json
import threading
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from engine.sandbox import kinds

if TYPE_CHECKING:
    from engine.sandbox.kinds import Kind
    from engine.sandbox.values import Json, Obj

_to_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False).encode


def encode(value: Json) -> bytes:
    """Compact UTF-8 JSON; a lone surrogate becomes ``?`` as nothing else could carry it."""
    return _to_json(value).encode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class Entry:
    """One stored version. ``obj`` is never mutated; ``thaw`` gives a copy that may be."""

    kind: Kind
    obj: Obj
    raw: bytes
    rv: int

    @property
    def name(self) -> str:
        """As in its metadata."""
        return str(self.obj["metadata"]["name"])

    @property
    def namespace(self) -> str:
        """As in its metadata; "" for what is in none."""
        return str(self.obj["metadata"].get("namespace", ""))

    @property
    def uid(self) -> str:
        """As in its metadata."""
        return str(self.obj["metadata"]["uid"])

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name."""
        return (self.namespace, self.name)

    def thaw(self) -> Obj:
        """A copy that may be changed."""
        copy: Obj = json.loads(self.raw)
        return copy


@dataclass(frozen=True)
class Change:
    """ADDED, MODIFIED or DELETED, with the version before it where there was one."""

    type: str
    entry: Entry
    previous: Entry | None

    @cached_property
    def line(self) -> bytes:
        """The watch event for who asked for whole objects; shared by all its watches."""
        return event_line(self.type, self.entry.raw)


def event_line(kind: str, raw: bytes) -> bytes:
    """One line of a watch."""
    return b'{"type":"' + kind.encode() + b'","object":' + raw + b"}\n"


Key = tuple[str, str]
Listener = Callable[[Change], None]

SNAPSHOTS = 16
HISTORY = 5_000
FIRST_VERSION = 100


class _Collection:
    """The objects of one resource: by key, and their keys in the order of a list."""

    def __init__(self) -> None:
        self.entries: dict[Key, Entry] = {}
        self.keys: list[Key] = []
        self.history: deque[Change] = deque(maxlen=HISTORY)
        self.compacted = FIRST_VERSION

    def note(self, change: Change) -> None:
        if len(self.history) == HISTORY:
            self.compacted = self.history[0].entry.rv
        self.history.append(change)


class Storage:
    """Guarantees: a stored object is never mutated; versions only grow; changes are in order."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.rv = FIRST_VERSION
        self._collections = {kind.resource: _Collection() for kind in kinds.ALL}
        self._listeners: list[Listener] = []
        self._snapshots: dict[tuple[str, int], tuple[Entry, ...]] = {}

    def listen(self, listener: Listener) -> None:
        """Call this listener with every change from now on."""
        self._listeners.append(listener)

    def get(self, kind: Kind, namespace: str, name: str) -> Entry | None:
        """The object as it is now; None when there is none."""
        return self._collections[kind.resource].entries.get((namespace, name))

    def entries(self, kind: Kind, namespace: str | None = None) -> list[Entry]:
        """All entries of one namespace (None: of all), in the order of their keys."""
        held = self._collections[kind.resource]
        if namespace is None:
            keys: Iterable[Key] = held.keys
        else:
            start = bisect_left(held.keys, (namespace, ""))
            end = bisect_left(held.keys, (namespace + "\0", ""))
            keys = held.keys[start:end]
        return [held.entries[key] for key in keys]

    def put(self, kind: Kind, obj: Obj) -> Entry:
        """Store a new object or a new version. ``obj`` is the storage's from here on."""
        with self.lock:
            held = self._collections[kind.resource]
            self.rv += 1
            meta = obj["metadata"]
            meta["resourceVersion"] = str(self.rv)
            entry = Entry(kind, obj, encode(obj), self.rv)
            previous = held.entries.get(entry.key)
            if previous is None:
                insort(held.keys, entry.key)
            held.entries[entry.key] = entry
            self._announce(held, Change("MODIFIED" if previous else "ADDED", entry, previous))
            return entry

    def remove(self, entry: Entry) -> Entry:
        """Take an object away; its last version carries the version of its removal."""
        with self.lock:
            held = self._collections[entry.kind.resource]
            self.rv += 1
            obj = dict(
                entry.obj, metadata=dict(entry.obj["metadata"], resourceVersion=str(self.rv))
            )
            last = Entry(entry.kind, obj, encode(obj), self.rv)
            previous = held.entries.pop(entry.key)
            del held.keys[bisect_left(held.keys, entry.key)]
            self._announce(held, Change("DELETED", last, previous))
            return last

    def _announce(self, held: _Collection, change: Change) -> None:
        held.note(change)
        for listener in self._listeners:
            listener(change)

    def since(self, kind: Kind, rv: int) -> list[Change] | None:
        """What happened after ``rv``; None when that is compacted already."""
        held = self._collections[kind.resource]
        if rv < held.compacted:
            return None
        changes: list[Change] = []
        for change in reversed(held.history):
            if change.entry.rv <= rv:
                break
            changes.append(change)
        changes.reverse()
        return changes

    def compact(self, kind: Kind | None = None) -> None:
        """Forget the past: watches and pages of older versions get 410 Expired."""
        with self.lock:
            for name, held in self._collections.items():
                if kind is None or name == kind.resource:
                    held.history.clear()
                    held.compacted = self.rv
            self._snapshots.clear()

    def keep_snapshot(self, kind: Kind, rv: int, entries: Iterable[Entry]) -> None:
        """Remember a list for its next pages; the oldest is forgotten when there are many."""
        self._snapshots[kind.resource, rv] = tuple(entries)
        while len(self._snapshots) > SNAPSHOTS:
            self._snapshots.pop(next(iter(self._snapshots)))

    def snapshot(self, kind: Kind, rv: int) -> tuple[Entry, ...] | None:
        """What a list began with at this version; None when it is forgotten."""
        return self._snapshots.get((kind.resource, rv))
