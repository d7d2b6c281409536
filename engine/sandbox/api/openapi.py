"""OpenAPI v3 from the table of types: enough for kubectl to validate, explain and patch."""

from __future__ import annotations

import functools
import hashlib
from typing import TYPE_CHECKING

from engine.kubeschema import shipped_types
from engine.kubeschema.model import ListOf, MapOf, Scalar, Struct, Type
from engine.sandbox import kinds
from engine.sandbox.store import encode

if TYPE_CHECKING:
    from engine.sandbox.kinds import Kind
    from engine.sandbox.values import Obj

_SCALARS: dict[str, Obj] = {
    "str": {"type": "string"},
    "bytes": {"type": "string", "format": "byte"},
    "time": {"type": "string", "format": "date-time"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "float": {"type": "number", "format": "double"},
    "bool": {"type": "boolean"},
    "qty": {"oneOf": [{"type": "string"}, {"type": "number"}]},
    "intstr": {"oneOf": [{"type": "integer"}, {"type": "string"}], "format": "int-or-string"},
    "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
}


def _paths() -> list[str]:
    return sorted({kind.path.strip("/") for kind in kinds.ALL})


@functools.cache
def index() -> bytes:
    """The list of the documents of OpenAPI v3."""
    paths = {}
    for path in _paths():
        digest = hashlib.sha256(document(path) or b"").hexdigest().upper()[:32]
        paths[path] = {"serverRelativeURL": f"/openapi/v3/{path}?hash={digest}"}
    return encode({"paths": paths})


@functools.cache
def document(path: str) -> bytes | None:
    """The OpenAPI document of one group and version; None where there is no such group."""
    served = [kind for kind in kinds.ALL if kind.path.strip("/") == path]
    if not served:
        return None
    paths: Obj = {}
    for kind in served:
        paths.update(_operations(kind))
    schemas = {struct.full_name: _schema(struct) for struct in shipped_types().structs()}
    for kind in served:
        gvk = {"group": kind.group, "version": kind.version, "kind": kind.kind}
        schemas[_struct(kind).full_name]["x-kubernetes-group-version-kind"] = [gvk]
    return encode(
        {
            "openapi": "3.0.0",
            "info": {"title": "Kubernetes", "version": "unversioned"},
            "paths": paths,
            "components": {"schemas": schemas},
        }
    )


def _struct(kind: Kind) -> Struct:
    return shipped_types().kind(kind.api_version, kind.kind)


def _schema(struct: Struct) -> Obj:
    out: Obj = {"type": "object", "description": struct.name}
    out["properties"] = {name: _type(kind) for name, kind in struct.fields.items()}
    if struct.atomic:
        out["x-kubernetes-map-type"] = "atomic"
    return out


def _type(kind: Type) -> Obj:
    if isinstance(kind, Scalar):
        return dict(_SCALARS[kind.name])
    if isinstance(kind, Struct):
        return {"allOf": [{"$ref": f"#/components/schemas/{kind.full_name}"}]}
    if isinstance(kind, MapOf):
        out: Obj = {"type": "object", "additionalProperties": _type(kind.value)}
        if kind.atomic:
            out["x-kubernetes-map-type"] = "atomic"
        return out
    return _list(kind)


def _list(kind: ListOf) -> Obj:
    out: Obj = {"type": "array", "items": _type(kind.item)}
    if kind.keys:
        out["x-kubernetes-list-type"] = "map"
        out["x-kubernetes-list-map-keys"] = list(kind.keys)
    else:
        out["x-kubernetes-list-type"] = "set" if kind.is_set else "atomic"
    if kind.merge_key or kind.merges:
        out["x-kubernetes-patch-strategy"] = "merge"
    if kind.merge_key:
        out["x-kubernetes-patch-merge-key"] = kind.merge_key
    return out


def _operations(kind: Kind) -> Obj:
    gvk = {"group": kind.group, "version": kind.version, "kind": kind.kind}
    names = ("dryRun", "fieldManager", "fieldValidation", "force")
    query = [
        {
            "name": name,
            "in": "query",
            "schema": {"type": "boolean" if name == "force" else "string"},
        }
        for name in names
    ]
    reference = {"$ref": f"#/components/schemas/{_struct(kind).full_name}"}
    reply = {"200": {"content": {"application/json": {"schema": reference}}, "description": "OK"}}

    def operation(action: str) -> Obj:
        return {
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": gvk,
            "parameters": query if action in ("post", "put", "patch") else [],
            "responses": reply,
        }

    root = f"{kind.path}/namespaces/{{namespace}}" if kind.namespaced else kind.path
    return {
        f"{root}/{kind.resource}": {"get": operation("list"), "post": operation("post")},
        f"{root}/{kind.resource}/{{name}}": {
            "get": operation("get"),
            "put": operation("put"),
            "patch": operation("patch"),
            "delete": operation("delete"),
        },
    }
