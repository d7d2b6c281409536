"""A local store of one resource in one namespace, by job: list once, then watch.

A reply to a write of ours and the watch arrive in any order. So each object is kept in its newest
version, and a deleted object leaves a tombstone that a late reply doesn't get past.
"""

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, Generic, NamedTuple, TypeVar

from engine.cluster import api
from engine.cluster.api import version_number
from engine.informers.reflector import Reflector, WatchContext
from engine.refs import JobKey
from engine.wellknown import JOB

Item = TypeVar("Item")
Manifest = dict[str, Any]

TOMBSTONES = 10_000
MAX_NAMES = 100
"""Of jobs in one selector, which is part of a URL."""


class Found(NamedTuple, Generic[Item]):
    """What is kept of one object."""

    key: JobKey
    """Its job."""
    uid: str
    """What identifies the object in its namespace for good."""
    version: int
    item: Item


class Informer(ABC, Generic[Item]):
    """What is kept of each object is the subclass's: `_index`, `_convert` and the hooks below.

    Guarantees: the context's `on_change` gets the job of every object that appears, changes or
    goes; of two versions the newer one counts, whatever the order they come in.
    Errors: `list` raises what the request raises; the watch goes on by itself, with back-off.
    """

    def __init__(self, context: WatchContext, path: str, selector: str) -> None:
        self.has_synced = False
        """Whether the first list is in the store."""
        self._context = context
        self._path = path
        self._selector = selector
        self._lock = threading.Lock()
        self._items: dict[JobKey, dict[str, Item]] = {}
        """By job and by what identifies an object in its namespace for good."""
        self._versions: dict[str, int] = {}
        """Of the objects that are kept."""
        self._tombstones: dict[str, int] = {}
        """In which version an object was deleted; the oldest ones are dropped."""
        self._version = ""
        self.reflector = Reflector(
            context, path, selector, list_=self.list, on_event=self._on_event
        )

    def list(self, selector: str = "") -> str:
        """Read every object, or those that `selector` picks, page by page. The version.

        What has changed or gone is reported.
        """
        pages = self._pages(selector)
        found: list[Found[Item]] = [one for page in pages for one in page["items"]]
        with self._lock:
            self._version = str(pages[0]["metadata"]["resourceVersion"])
            changed = self._replace(found, version_number(self._version))
            self.has_synced = True
        for key in changed:
            self._context.on_change(key)
        self._context.on_list()
        return self._version

    def start(self) -> None:
        """Watch from where `list` ended, in a thread of its own; without one it begins there.

        Once it is started, nothing happens.
        """
        self.reflector.start(self._version)

    def items(self, key: JobKey) -> tuple[Item, ...]:
        """What is known of one job."""
        with self._lock:
            return tuple(self._items.get(key, {}).values())

    def all_items(self) -> tuple[Item, ...]:
        """What is known of every job."""
        with self._lock:
            return tuple(chain.from_iterable(map(dict.values, self._items.values())))

    def upsert(self, manifest: Manifest) -> None:
        """Take in what a write answered, unless the watch already knows better."""
        found = self._read(manifest)
        if found is not None:
            with self._lock:
                self._upsert(found)

    def refresh(self, names: Iterable[str]) -> None:
        """Ask the API for the objects of some jobs, where the store may not have them.

        Errors: those of the lists.
        """
        left = sorted(names)
        for first in range(0, len(left), MAX_NAMES):
            for page in self._pages(of_jobs(left[first : first + MAX_NAMES])):
                with self._lock:
                    for found in page["items"]:
                        self._upsert(found)

    def _pages(self, selector: str) -> Sequence[Manifest]:
        both = ",".join(filter(None, (self._selector, selector)))
        return api.list_all(self._context.client, self._path, both, keep=self._read)

    @abstractmethod
    def _index(self, manifest: Manifest) -> tuple[JobKey, str] | None:
        """The object's job and what identifies it for good; None for one of no job."""

    @abstractmethod
    def _convert(self, manifest: Manifest) -> Item:
        """What is kept of an object."""

    def _before_upsert(self, key: JobKey, uid: str, item: Item) -> None:
        """Hook: any state of an object that is not deleted, in whichever order they come."""

    def _before_delete(self, key: JobKey, uid: str, last: Item | None) -> None:
        """Hook: the object is gone; `last` is its last state, if the watch gave it."""

    def _read(self, manifest: Manifest) -> Found[Item] | None:
        index, version = self._index(manifest), manifest["metadata"].get("resourceVersion", "")
        return Found(*index, version_number(version), self._convert(manifest)) if index else None

    def _on_event(self, kind: str, manifest: Manifest) -> None:
        found = self._read(manifest)
        if found is None:
            return
        with self._lock:
            if kind == "DELETED":
                self._delete(found.key, found.uid, found.version, found.item)
            elif not self._upsert(found):
                return
        self._context.on_change(found.key)

    def _replace(self, found: Sequence[Found[Item]], version: int) -> set[JobKey]:
        """Make `found` the store; what the list is too old to know of stays. What has changed."""
        known = {(key, uid) for key, items in self._items.items() for uid in items}
        changed = set[JobKey]()
        for key, uid in known - {(one.key, one.uid) for one in found}:
            if self._versions[uid] <= version:
                self._delete(key, uid, version)
                changed.add(key)
        return changed.union(one.key for one in found if self._upsert(one))

    def _upsert(self, found: Found[Item]) -> bool:
        """Whether this is newer than what was known."""
        key, uid, version, item = found
        if version < self._tombstones.get(uid, -1):
            return False
        self._before_upsert(key, uid, item)
        if version <= self._versions.get(uid, -1):
            return False
        self._items.setdefault(key, {})[uid] = item
        self._versions[uid] = version
        return True

    def _delete(self, key: JobKey, uid: str, version: int, last: Item | None = None) -> None:
        self._before_delete(key, uid, last)
        self._tombstones[uid] = max(version, self._tombstones.pop(uid, -1))
        if len(self._tombstones) > TOMBSTONES:
            del self._tombstones[next(iter(self._tombstones))]
        self._versions.pop(uid, None)
        items = self._items.get(key, {})
        items.pop(uid, None)
        if not items:
            self._items.pop(key, None)


def of_jobs(names: Iterable[str]) -> str:
    """Selects the objects of these jobs."""
    return f"{JOB} in ({','.join(names)})"
