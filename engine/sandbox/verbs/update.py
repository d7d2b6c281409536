"""update: the one way in which a stored object becomes another; every patch ends here too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.sandbox import errors, kinds
from engine.sandbox.admission import custom_resources, names
from engine.sandbox.admission.strategy import strategy_of
from engine.sandbox.store import Entry, encode
from engine.sandbox.verbs.delete import finish_if_free
from engine.sandbox.verbs.managers import note_manager

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.sandbox.context import Context, Options
    from engine.sandbox.kinds import Kind
    from engine.sandbox.values import Obj

MODIFIED = (
    "the object has been modified; please apply your changes to the latest version and try again"
)
_FROM_OLD = (
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
    "generation",
)


def update(
    context: Context,
    kind: Kind,
    namespace: str,
    name: str,
    change: Callable[[Entry], Obj],
    options: Options,
    *,
    subresource: str = "",
) -> Entry:
    """Replace an object by ``change(current)``; no new version when nothing differs.

    Errors: 404; 409 another resourceVersion or uid; 422 invalid or immutable.
    """
    with context.storage.lock:
        current = context.storage.get(kind, namespace, name)
        if current is None:
            raise errors.not_found(kind.group, kind.resource, name)
        new = change(current)
        meta = new.setdefault("metadata", {})
        _same_object(kind, current, meta)
        for field in _FROM_OLD:
            meta.pop(field, None)
            if field in current.obj["metadata"]:
                meta[field] = current.obj["metadata"][field]
        meta.update(name=name, resourceVersion=current.obj["metadata"]["resourceVersion"])
        if kind.namespaced:
            meta["namespace"] = namespace
        if kind.custom and subresource == "status":
            meta.clear()
            meta.update(current.obj["metadata"])
        _keep_other_side(current.obj, new, subresource)
        strategy = strategy_of(kind.resource)
        if subresource != "status":
            strategy.default(new)
            found = names.metadata_errors(meta, label_name=kind is kinds.NAMESPACES)
            found += strategy.check_change(current.obj, new) or strategy.check(new)
            if found:
                raise errors.invalid(kind.group, kind.kind, name, found)
            if strategy.counts_changes and new.get("spec") != current.obj.get("spec"):
                meta["generation"] = meta.get("generation", 1) + 1
        if kind.custom:
            found = custom_resources.check(context, kind, new, current.obj, options.warnings)
            if found:
                raise errors.invalid(kind.group, kind.kind, name, found)
        now = context.clock.stamp()
        note_manager(current.obj, new, options.manager, kind.api_version, subresource, now)
        if new == current.obj:
            return current
        if options.dry_run:
            return Entry(kind, new, encode(new), current.rv)
        entry = context.storage.put(kind, new)
        finish_if_free(context, entry)
        return entry


def _same_object(kind: Kind, current: Entry, meta: Obj) -> None:
    version = meta.get("resourceVersion")
    if version and version != current.obj["metadata"]["resourceVersion"]:
        raise errors.conflict(kind.group, kind.resource, current.name, MODIFIED)
    uid = meta.get("uid")
    if uid and uid != current.uid:
        why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {current.uid}"
        raise errors.conflict(kind.group, kind.resource, current.name, why)
    if meta.get("name", current.name) != current.name:
        raise errors.bad_request(
            f"the name of the object ({meta['name']}) does not match the name on the URL "
            f"({current.name})"
        )


def _keep_other_side(old: Obj, new: Obj, subresource: str) -> None:
    """A write to the object leaves its status alone; one to its status, the rest."""
    kept: tuple[str, ...] = ("status",)
    if subresource == "status":
        kept = tuple({*old, *new} - {"status", "metadata"})
        owners = old["metadata"].get("ownerReferences")
        new["metadata"].pop("ownerReferences", None)
        if owners:
            new["metadata"]["ownerReferences"] = owners
    elif "status" not in old and "status" not in new:
        return
    for name in kept:
        new.pop(name, None)
        if name in old:
            new[name] = old[name]
