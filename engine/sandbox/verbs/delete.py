"""delete: preconditions, grace, finalizers and propagation; and the end of a deleting object."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.sandbox import errors, kinds
from engine.sandbox.clock import rfc3339

if TYPE_CHECKING:
    from engine.sandbox.context import Context
    from engine.sandbox.kinds import Kind
    from engine.sandbox.store import Entry
    from engine.sandbox.values import Obj

FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"
_ENDED = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """The body or the query of a delete."""

    grace: int | None = None
    uid: str = ""
    resource_version: str = ""
    propagation: str = ""
    dry_run: bool = False


def delete(
    context: Context, kind: Kind, namespace: str, name: str, options: DeleteOptions
) -> tuple[Entry, bool]:
    """Delete, or begin to; the last version, and whether the object is gone.

    Errors: 404; 409 for a precondition that doesn't hold.
    """
    with context.storage.lock:
        entry = context.storage.get(kind, namespace, name)
        if entry is None:
            raise errors.not_found(kind.group, kind.resource, name)
        _check_preconditions(kind, entry, options)
        grace = _grace(kind, entry, options)
        finalizers = _finalizers(entry, options)
        held = bool(grace or finalizers or _content(entry))
        if options.dry_run:
            return entry, not held
        if not held:
            return context.storage.remove(entry), True
        return _begin(context, entry, grace, finalizers), False


def _begin(context: Context, entry: Entry, grace: int, finalizers: list[str]) -> Entry:
    meta = entry.obj["metadata"]
    changed = dict(meta)
    if "deletionTimestamp" not in meta or grace < meta.get("deletionGracePeriodSeconds", 0):
        changed["deletionTimestamp"] = rfc3339(context.clock.now() + grace)
        changed["deletionGracePeriodSeconds"] = grace
    if finalizers:
        changed["finalizers"] = finalizers
    else:
        changed.pop("finalizers", None)
    return entry if changed == meta else _with_metadata(context, entry, changed)


def _with_metadata(context: Context, entry: Entry, meta: Obj) -> Entry:
    obj = {**entry.obj, "metadata": meta}
    if entry.kind is kinds.NAMESPACES:
        obj["status"] = {**obj.get("status", {}), "phase": "Terminating"}
    return context.storage.put(entry.kind, obj)


def finish_if_free(context: Context, entry: Entry) -> None:
    """An object that was only held by finalizers goes when the last of them is removed."""
    meta = entry.obj["metadata"]
    held = meta.get("finalizers") or _content(entry)
    if meta.get("deletionTimestamp") and not held and not meta.get("deletionGracePeriodSeconds"):
        context.storage.remove(entry)


def _content(entry: Entry) -> bool:
    """A namespace that still has to be emptied."""
    return entry.kind is kinds.NAMESPACES and bool(entry.obj["spec"].get("finalizers"))


def _check_preconditions(kind: Kind, entry: Entry, options: DeleteOptions) -> None:
    if options.uid and options.uid != entry.uid:
        why = (
            f"the UID in the precondition ({options.uid}) does not match the UID in record "
            f"({entry.uid}). The object might have been deleted and then recreated"
        )
        raise errors.conflict(kind.group, kind.kind, entry.name, why)
    version = entry.obj["metadata"]["resourceVersion"]
    if options.resource_version and options.resource_version != version:
        why = (
            f"the ResourceVersion in the precondition ({options.resource_version}) does not match "
            f"the ResourceVersion in record ({version}). The object might have been modified"
        )
        raise errors.conflict(kind.group, kind.kind, entry.name, why)


def _grace(kind: Kind, entry: Entry, options: DeleteOptions) -> int:
    """Only a Pod that a node may still run needs time to end."""
    if kind is not kinds.PODS:
        return 0
    spec, status = entry.obj["spec"], entry.obj.get("status", {})
    if not spec.get("nodeName") or status.get("phase") in _ENDED:
        return 0
    wanted: int = options.grace if options.grace is not None else _default_grace(entry)
    if entry.obj["metadata"].get("deletionTimestamp"):
        return min(wanted, int(entry.obj["metadata"].get("deletionGracePeriodSeconds", 0)))
    return wanted


def _default_grace(entry: Entry) -> int:
    return int(entry.obj["spec"].get("terminationGracePeriodSeconds", 30))


def _finalizers(entry: Entry, options: DeleteOptions) -> list[str]:
    meta = entry.obj["metadata"]
    names = [name for name in meta.get("finalizers", ()) if name not in (FOREGROUND, ORPHAN)]
    if options.propagation == "Foreground":
        names.append(FOREGROUND)
    elif options.propagation == "Orphan":
        names.append(ORPHAN)
    elif not options.propagation:
        names.extend(name for name in meta.get("finalizers", ()) if name in (FOREGROUND, ORPHAN))
    return names
