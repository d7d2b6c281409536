"""patch: JSON, merge and strategic merge, all through ``update``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from engine.api.kubernetes_schema import SHIPPED
from engine.errors import RenderError
from engine.sandbox import errors
from engine.sandbox.errors import StatusError, field_invalid
from engine.sandbox.kinds import Kind
from engine.sandbox.patches import json_patch, merge_patch
from engine.sandbox.schema.decode import DecodeError, normalise
from engine.sandbox.verbs.update import update
from engine.transform.strategic_merge import strategic_merge

if TYPE_CHECKING:
    from engine.sandbox.context import Context, Options
    from engine.sandbox.store import Entry
    from engine.sandbox.values import Json, Obj

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
FORMATS = (JSON_PATCH, MERGE_PATCH, STRATEGIC)


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
        doc = _change(kind, content_type, doc, body)
        _refuse_other_uid(kind, current, doc)
        return _read_back(context, kind, doc, options)

    return update(context, kind, namespace, name, patched, options, subresource=subresource)


def _change(kind: Kind, content_type: str, doc: Obj, body: Json) -> Obj:
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
        return strategic_merge(SHIPPED, SHIPPED.kind(kind.api_version, kind.kind), doc, body)
    except RenderError as error:
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
