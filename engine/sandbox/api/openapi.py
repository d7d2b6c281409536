"""As much of OpenAPI v3 as kubectl asks for before it applies: which options a write has."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from engine.sandbox import kinds
from engine.sandbox.store import encode

if TYPE_CHECKING:
    from engine.sandbox.kinds import Kind
    from engine.sandbox.values import Obj

_OPTIONS = ("dryRun", "fieldManager", "fieldValidation")


def index() -> bytes:
    """The list of the documents of OpenAPI v3."""
    paths = {kind.path.strip("/") for kind in kinds.ALL}
    urls = {path: {"serverRelativeURL": f"/openapi/v3/{path}?hash=1"} for path in sorted(paths)}
    return encode({"paths": urls})


@functools.cache
def document(path: str) -> bytes | None:
    """The OpenAPI document of one group and version; None where there is no such group."""
    served = [kind for kind in kinds.ALL if kind.path.strip("/") == path]
    if not served:
        return None
    paths: Obj = {}
    for kind in served:
        paths.update(_operations(kind))
    info = {"title": "Kubernetes", "version": "unversioned"}
    return encode({"openapi": "3.0.0", "info": info, "paths": paths})


def _operations(kind: Kind) -> Obj:
    gvk = {"group": kind.group, "version": kind.version, "kind": kind.kind}
    options = [{"name": name, "in": "query", "schema": {"type": "string"}} for name in _OPTIONS]

    def operation(action: str) -> Obj:
        return {
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": gvk,
            "parameters": options,
            "responses": {"200": {"description": "OK"}},
        }

    root = f"{kind.path}/namespaces/{{namespace}}" if kind.namespaced else kind.path
    return {
        f"{root}/{kind.resource}": {"post": operation("post")},
        f"{root}/{kind.resource}/{{name}}": {
            "put": operation("put"),
            "patch": operation("patch"),
        },
    }
