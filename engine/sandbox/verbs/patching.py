"""patch: JSON, merge, strategic merge and apply, all through ``update`` (apply also creates)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from engine.errors import PatchError
from engine.kubeschema.strategic_merge import strategic_merge
from engine.sandbox import errors
from engine.sandbox.errors import StatusError, field_invalid
from engine.sandbox.fields import apply
from engine.sandbox.fields.server_side_apply import Applier
from engine.sandbox.kinds import EVENTS_V1, Kind
from engine.sandbox.patch import json_patch, merge_patch
from engine.sandbox.schema.decode import DecodeError, decode
from engine.sandbox.verbs.create import create
from engine.sandbox.verbs.decoding import normalise
from engine.sandbox.verbs.update import update
from engine.sandbox.verbs.views import event_from_v1, event_to_v1

if TYPE_CHECKING:
    from engine.sandbox.context import Context, Options
    from engine.sandbox.store import Entry
    from engine.sandbox.values import Json, Obj

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
FORMATS = (JSON_PATCH, MERGE_PATCH, STRATEGIC, APPLY)


def patch(
    context: Context,
    kind: Kind,
    namespace: str,
    name: str,
    content_type: str,
    body: Json,
    options: Options,
    subresource: str = "",
) -> Entry:
    """Errors: as ``update``; 400 and 422 for a patch that can't be read or doesn't fit."""

    def patched(current: Entry) -> Obj:
        doc = current.thaw()
        if kind is EVENTS_V1:
            doc = event_to_v1(doc)
        doc = _change(context, kind, content_type, doc, body)
        _refuse_other_uid(kind, current, doc)
        obj = _read_back(context, kind, doc, options)
        return event_from_v1(obj) if kind is EVENTS_V1 else obj

    return update(context, kind, namespace, name, patched, options, subresource=subresource)


def _change(context: Context, kind: Kind, content_type: str, doc: Obj, body: Json) -> Obj:
    if content_type == JSON_PATCH:
        changed: Obj = json_patch(doc, body)
        return changed
    if not isinstance(body, dict):
        raise errors.bad_request(
            "json: cannot unmarshal into Go value of type map[string]interface {}"
        )
    if content_type == MERGE_PATCH:
        merged: Obj = merge_patch(doc, body)
        return merged
    try:
        return strategic_merge(context.struct(kind), doc, body)
    except PatchError as error:
        raise errors.bad_request(error.cause) from None


def _read_back(context: Context, kind: Kind, doc: Json, options: Options) -> Obj:
    try:
        obj, unknown = normalise(context, kind, doc)
    except DecodeError as error:
        raise _bad_patch(doc, str(error)) from None
    if unknown and options.validation == "Strict":
        listed = ", ".join(f'unknown field "{path}"' for path in unknown)
        raise _bad_patch(doc, f"strict decoding error: {listed}")
    if unknown and options.validation == "Warn":
        options.warnings.extend(f'unknown field "{path}"' for path in unknown)
    return obj


def _refuse_other_uid(kind: Kind, current: Entry, doc: Json) -> None:
    meta = doc.get("metadata") if isinstance(doc, dict) else None
    uid = meta.get("uid", current.uid) if isinstance(meta, dict) else current.uid
    if uid != current.uid:
        found = [field_invalid("metadata.uid", uid, "field is immutable")]
        raise errors.invalid(kind.group, kind.kind, current.name, found)


def _bad_patch(doc: Json, why: str) -> StatusError:
    error = errors.invalid("", "", "", [field_invalid("patch", json.dumps(doc), why)])
    error.details = {"causes": (error.details or {})["causes"]}
    return error


def server_side_apply(
    context: Context,
    kind: Kind,
    namespace: str,
    name: str,
    config: Json,
    options: Options,
    *,
    force: bool,
    subresource: str = "",
) -> tuple[Entry, bool]:
    """The entry and whether it was created.

    Errors: as ``update`` and ``create``; 409 with the conflicting fields and their managers.
    """
    wanted = _read_config(context, kind, namespace, name, config)
    wanted.pop("spec" if subresource == "status" else "status", None)
    now = context.clock.stamp()
    applier = Applier(options.manager, kind.api_version, subresource, force, now)
    struct = context.struct(kind)
    with context.storage.lock:
        if context.storage.get(kind, namespace, name) is None:
            if subresource:
                raise errors.not_found(kind.group, kind.resource, name)
            skeleton: Obj = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {}}
            fresh = apply(struct, skeleton, wanted, applier)
            return create(context, kind, namespace, fresh, options, applied=True), True

        def applied(current: Entry) -> Obj:
            merged = apply(struct, current.thaw(), wanted, applier)
            return normalise(context, kind, merged)[0]

        entry = update(
            context, kind, namespace, name, applied, options, subresource=subresource, applied=True
        )
        return entry, False


def _read_config(context: Context, kind: Kind, namespace: str, name: str, config: Json) -> Obj:
    if not isinstance(config, dict):
        raise errors.bad_request("error decoding YAML: an object is needed")
    given = (config.get("apiVersion"), config.get("kind"))
    if given != (kind.api_version, kind.kind):
        raise errors.bad_request(
            f"apply patch must be a {kind.api_version} {kind.kind}, not {given[0]} {given[1]}"
        )
    try:
        wanted, unknown = decode(context.struct(kind), config)
    except DecodeError as error:
        raise _not_typed(kind, namespace, name, str(error)) from None
    if unknown:
        why = "; ".join(f".{path}: field not declared in schema" for path in unknown)
        raise _not_typed(kind, namespace, name, why)
    if (config.get("metadata") or {}).get("managedFields") is not None:
        raise errors.bad_request("metadata.managedFields must be nil")
    given_name = wanted.get("metadata", {}).get("name", name)
    if given_name != name:
        raise errors.bad_request(
            f"the name of the object ({given_name}) does not match the name on the URL ({name})"
        )
    wanted["metadata"] = {**wanted.get("metadata", {}), "name": name}
    if kind.namespaced:
        wanted["metadata"]["namespace"] = namespace
    return {"apiVersion": kind.api_version, "kind": kind.kind, **wanted}


def _not_typed(kind: Kind, namespace: str, name: str, why: str) -> StatusError:
    subject = f"{namespace}/{name}; {kind.group}/{kind.version}, Kind={kind.kind}"
    message = f"failed to create typed patch object ({subject}): {why}"
    return StatusError(500, "InternalError", message)
