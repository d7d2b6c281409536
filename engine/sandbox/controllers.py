"""The controllers: the garbage collector, and what furnishes and empties namespaces."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.sandbox import kinds
from engine.sandbox.furnishing import furnish, is_spoilt
from engine.sandbox.verbs.delete import FOREGROUND, ORPHAN, DeleteOptions, delete, finish_if_free

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.sandbox.context import Context
    from engine.sandbox.kinds import Kind
    from engine.sandbox.store import Change, Entry
    from engine.sandbox.values import Json, Obj
    from engine.sandbox.verbs.watch import WatchHub

_BACKGROUND = DeleteOptions(propagation="Background")


class GarbageCollector:
    """Deletes what no living object owns; an index from owner to dependents keeps it cheap."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._dependents: dict[str, dict[tuple[str, str, str], Entry]] = {}
        self._living: dict[str, tuple[Kind, str, str]] = {}
        context.storage.listen(self._on_change)

    def _on_change(self, change: Change) -> None:
        entry = change.entry
        at = (entry.kind.resource, *entry.key)
        if change.previous is not None:
            for uid in _owner_uids(change.previous):
                self._dependents.get(uid, {}).pop(at, None)
        if change.type == "DELETED":
            self._living.pop(entry.uid, None)
            if self._dependents.get(entry.uid):
                self._context.call_soon(lambda: self._owner_gone(entry.uid))
            self._recheck_owners(entry)
            return
        self._living[entry.uid] = (entry.kind, *entry.key)
        owners = _owner_uids(entry)
        for uid in owners:
            self._dependents.setdefault(uid, {})[at] = entry
        if any(uid not in self._living for uid in owners):
            self._context.call_soon(lambda: self._collect(entry))
        meta = entry.obj["metadata"]
        if meta.get("deletionTimestamp") and {FOREGROUND, ORPHAN} & set(meta.get("finalizers", ())):
            self._context.call_soon(lambda: self._finalize(entry.uid))
        elif meta.get("deletionTimestamp"):
            self._recheck_owners(entry)

    def _recheck_owners(self, entry: Entry) -> None:
        """A dependent went: an owner that waits for its dependents may be free now."""
        for uid in _owner_uids(entry):
            self._context.call_soon(lambda uid=uid: self._finalize(uid))

    def _owner_gone(self, uid: str) -> None:
        for entry in list(self._dependents.get(uid, {}).values()):
            self._collect(entry)
        self._dependents.pop(uid, None)

    def _collect(self, stale: Entry) -> None:
        """Delete a dependent without owners; of one that has some left, drop the dead ones."""
        with self._context.storage.lock:
            entry = self._context.storage.get(stale.kind, *stale.key)
            if entry is None or entry.uid != stale.uid:
                return
            owners = entry.obj["metadata"].get("ownerReferences", [])
            alive = [owner for owner in owners if self._is_alive(owner, entry)]
            if len(alive) == len(owners):
                return
            if not alive:
                if not entry.obj["metadata"].get("deletionTimestamp"):
                    delete(self._context, entry.kind, *entry.key, _BACKGROUND)
                return
            _set(self._context, entry, "ownerReferences", alive)

    def _is_alive(self, owner: Obj, dependent: Entry) -> bool:
        kind = kinds.BY_KIND.get((owner.get("apiVersion", ""), owner.get("kind", "")))
        if kind is None:
            return True
        namespace = dependent.namespace if kind.namespaced else ""
        found = self._context.storage.get(kind, namespace, owner.get("name", ""))
        return found is not None and found.uid == owner.get("uid")

    def _finalize(self, uid: str) -> None:
        with self._context.storage.lock:
            owner = self._find(uid)
            if owner is None or not owner.obj["metadata"].get("deletionTimestamp"):
                return
            finalizers = owner.obj["metadata"].get("finalizers", [])
            dependents = list(self._dependents.get(uid, {}).values())
            if ORPHAN in finalizers:
                for entry in dependents:
                    owners = entry.obj["metadata"]["ownerReferences"]
                    kept = [reference for reference in owners if reference["uid"] != uid]
                    _set(self._context, entry, "ownerReferences", kept)
            elif FOREGROUND in finalizers:
                for entry in dependents:
                    if not entry.obj["metadata"].get("deletionTimestamp"):
                        delete(self._context, entry.kind, *entry.key, _BACKGROUND)
                if any(_blocks(entry, uid) for entry in self._dependents.get(uid, {}).values()):
                    return
            else:
                return
            kept = [name for name in finalizers if name not in (FOREGROUND, ORPHAN)]
            entry = _set(self._context, owner, "finalizers", kept)
            finish_if_free(self._context, entry)

    def _find(self, uid: str) -> Entry | None:
        where = self._living.get(uid)
        return self._context.storage.get(*where) if where else None


def _owner_uids(entry: Entry) -> list[str]:
    return [owner["uid"] for owner in entry.obj["metadata"].get("ownerReferences", ())]


def _blocks(entry: Entry, uid: str) -> bool:
    owners = entry.obj["metadata"].get("ownerReferences", ())
    return any(owner["uid"] == uid and owner.get("blockOwnerDeletion") for owner in owners)


def _set(context: Context, entry: Entry, name: str, value: list[Json]) -> Entry:
    meta = {**entry.obj["metadata"], name: value}
    if not value:
        del meta[name]
    return context.storage.put(entry.kind, {**entry.obj, "metadata": meta})


class NamespaceController:
    """Deletes everything in a terminating namespace, then lets the namespace go."""

    def __init__(self, context: Context) -> None:
        self._context = context
        context.storage.listen(self._on_change)

    def _on_change(self, change: Change) -> None:
        entry = change.entry
        if entry.kind is kinds.NAMESPACES:
            name = entry.name if entry.obj["metadata"].get("deletionTimestamp") else ""
        else:
            name = entry.namespace if change.type == "DELETED" else ""
        holder = self._context.storage.get(kinds.NAMESPACES, "", name) if name else None
        if holder is not None and holder.obj["metadata"].get("deletionTimestamp"):
            self._context.call_soon(lambda: self._empty(name))

    def _empty(self, name: str) -> None:
        with self._context.storage.lock:
            namespace = self._context.storage.get(kinds.NAMESPACES, "", name)
            if namespace is None or not namespace.obj["metadata"].get("deletionTimestamp"):
                return
            for entry in self._content(name):
                if not entry.obj["metadata"].get("deletionTimestamp"):
                    delete(self._context, entry.kind, *entry.key, _BACKGROUND)
            if namespace.obj["spec"].get("finalizers") and not any(self._content(name)):
                spec = {key: v for key, v in namespace.obj["spec"].items() if key != "finalizers"}
                obj = {**namespace.obj, "spec": spec, "metadata": dict(namespace.obj["metadata"])}
                finish_if_free(self._context, self._context.storage.put(kinds.NAMESPACES, obj))

    def _content(self, name: str) -> Iterator[Entry]:
        for kind in kinds.ALL:
            if kind.namespaced:
                yield from self._context.storage.entries(kind, name)


class CustomResourceController:
    """Deletes the objects of a kind whose definition goes, and ends their watches."""

    def __init__(self, context: Context, hub: WatchHub) -> None:
        self._context = context
        self._hub = hub
        context.storage.listen(self._on_change)

    def _on_change(self, change: Change) -> None:
        if change.entry.kind is kinds.CRDS and change.type == "DELETED":
            resource = change.entry.name.partition(".")[0]
            if resource in kinds.BY_NAME:
                self._context.call_soon(lambda: self._empty(kinds.BY_NAME[resource]))

    def _empty(self, kind: Kind) -> None:
        with self._context.storage.lock:
            for entry in self._context.storage.entries(kind):
                self._context.storage.remove(entry)
        self._hub.close(kind.resource)


class NamespaceContentController:
    """Gives a namespace again what it always has: its default account and root certificate."""

    def __init__(self, context: Context) -> None:
        self._context = context
        context.storage.listen(self._on_change)

    def _on_change(self, change: Change) -> None:
        entry = change.entry
        if entry.kind is kinds.NAMESPACES and change.type == "ADDED":
            self._context.call_soon(lambda: furnish(self._context, entry.name))
        elif entry.kind in (kinds.SERVICE_ACCOUNTS, kinds.CONFIGMAPS) and (
            change.type == "DELETED" or is_spoilt(entry)
        ):
            self._context.call_soon(lambda: furnish(self._context, entry.namespace))
