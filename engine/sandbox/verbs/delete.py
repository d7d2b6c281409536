"""delete: preconditions, grace, finalizers and propagation; and the end of a deleting object."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.sandbox import errors, kinds
from engine.sandbox.clock import parse_rfc3339, rfc3339

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
        check_preconditions(kind, entry, options)
        grace = _grace(kind, entry, options)
        if grace is None:
            return entry, False
        finalizers = _finalizers(entry, options)
        held = bool(grace or finalizers or _content(entry))
        if options.dry_run:
            return entry, not held
        if held or kind is kinds.PODS:
            entry = _begin(context, entry, grace, finalizers)
        return (entry, False) if held else (context.storage.remove(entry), True)


def _begin(context: Context, entry: Entry, grace: int, finalizers: list[str]) -> Entry:
    """Mark the object. A Pod is marked even if it goes at once: watches see both."""
    meta = entry.obj["metadata"]
    changed = dict(meta)
    now = context.clock.now()
    if "deletionTimestamp" not in meta:
        _mark(changed, now + grace, grace)
        if "generation" in meta:
            changed["generation"] += 1
    elif grace < (before := meta.get("deletionGracePeriodSeconds", 0)):
        end = parse_rfc3339(meta["deletionTimestamp"]) - before + grace
        _mark(changed, max(end, now), grace if end >= now else min(grace, 1))
    if finalizers:
        changed["finalizers"] = finalizers
    else:
        changed.pop("finalizers", None)
    return entry if changed == meta else _with_metadata(context, entry, changed)


def _mark(meta: Obj, when: float, grace: int) -> None:
    meta.update(deletionTimestamp=rfc3339(when), deletionGracePeriodSeconds=grace)


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


def check_preconditions(kind: Kind, entry: Entry, options: DeleteOptions) -> None:
    """Errors: 409 for another object, or another version of it, than was meant."""
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


def _grace(kind: Kind, entry: Entry, options: DeleteOptions) -> int | None:
    """Only a Pod that a node may still run needs time to end; None: it is ending already."""
    if kind is not kinds.PODS:
        return 0
    meta, spec, status = entry.obj["metadata"], entry.obj["spec"], entry.obj.get("status", {})
    wanted: int = options.grace if options.grace is not None else _default_grace(entry)
    wanted = 1 if wanted < 0 else wanted
    if meta.get("deletionTimestamp"):
        pending = int(meta.get("deletionGracePeriodSeconds", 0))
        is_shorter = options.grace is not None and wanted < pending
        return (wanted if is_shorter else None) if pending else 0
    if not spec.get("nodeName") or status.get("phase") in _ENDED:
        return 0
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
