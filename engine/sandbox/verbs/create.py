"""create: prepare, check, charge the quota, store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.sandbox import errors, kinds
from engine.sandbox.admission import custom_resources, names
from engine.sandbox.admission.service_account import admit_account
from engine.sandbox.admission.strategy import strategy_of
from engine.sandbox.furnishing import furnish
from engine.sandbox.store import Entry, encode
from engine.sandbox.verbs.managers import note_manager

if TYPE_CHECKING:
    from engine.sandbox.context import Context, Options
    from engine.sandbox.kinds import Kind
    from engine.sandbox.values import Obj

_SERVER_OWNED = (
    "resourceVersion",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
    "generation",
    "managedFields",
)


def create(context: Context, kind: Kind, namespace: str, obj: Obj, options: Options) -> Entry:
    """Store a decoded object; with a dry run, only what would have been stored.

    Errors: 404 no such namespace; 403 it is going, or a quota; 409 exists; 422 invalid.
    """
    _prepare(context, kind, namespace, obj, options)
    _refuse_namespace(context, kind, obj)
    if kind is kinds.PODS:
        admit_account(context, obj)
    meta = obj["metadata"]
    strategy = strategy_of(kind.resource)
    label_name = kind is kinds.NAMESPACES
    found = names.metadata_errors(meta, label_name=label_name) + strategy.check(obj)
    if kind.custom:
        custom_resources.fill(context, kind, obj)
        found += custom_resources.check(context, kind, obj, None, options.warnings)
    if found:
        raise errors.invalid(kind.group, kind.kind, meta.get("name", ""), found)
    with context.storage.lock:
        context.quotas.check(kind, obj)
        if context.storage.get(kind, meta.get("namespace", ""), meta["name"]) is not None:
            raise errors.already_exists(kind.group, kind.resource, meta["name"])
        if options.dry_run:
            return Entry(kind, obj, encode(obj), 0)
        entry = context.storage.put(kind, obj)
        if kind is kinds.NAMESPACES:
            furnish(context, entry.name)
        context.quotas.flush()
        return context.storage.get(kind, *entry.key) or entry


def _prepare(context: Context, kind: Kind, namespace: str, obj: Obj, options: Options) -> None:
    """Fill in what the server owns and defaults."""
    meta = obj.setdefault("metadata", {})
    for name in _SERVER_OWNED:
        meta.pop(name, None)
    if kind.namespaced:
        if meta.setdefault("namespace", namespace) != namespace:
            raise errors.bad_request(
                "the namespace of the provided object does not match the namespace sent on the "
                "request"
            )
    elif meta.pop("namespace", None):
        raise errors.bad_request("namespace is not allowed on this type")
    if not meta.get("name") and meta.get("generateName"):
        meta["name"] = names.generated(meta["generateName"], context.chance)
    meta["uid"] = context.new_uid()
    meta["creationTimestamp"] = context.clock.stamp()
    obj.pop("status", None)
    strategy = strategy_of(kind.resource)
    strategy.default(obj)
    note_manager(None, obj, options.manager, kind.api_version, "", meta["creationTimestamp"])
    strategy.admit(obj)
    if strategy.counts_changes:
        meta["generation"] = 1
    if strategy.first_status is not None:
        obj["status"] = strategy.first_status(obj)


def _refuse_namespace(context: Context, kind: Kind, obj: Obj) -> None:
    if not kind.namespaced:
        return
    meta = obj["metadata"]
    entry = context.storage.get(kinds.NAMESPACES, "", meta["namespace"])
    if entry is None:
        raise errors.not_found("", "namespaces", meta["namespace"])
    if entry.obj["metadata"].get("deletionTimestamp"):
        words = (
            f"unable to create new content in namespace {meta['namespace']} because it is being "
            "terminated"
        )
        cause = {
            "reason": "NamespaceTerminating",
            "message": f"namespace {meta['namespace']} is being terminated",
            "field": "metadata.namespace",
        }
        raise errors.forbidden(kind.group, kind.resource, meta.get("name", ""), words, [cause])
