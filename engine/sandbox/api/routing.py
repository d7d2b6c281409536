"""Which resource and verb a request means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.sandbox import kinds
from engine.sandbox.admission.custom_resources import served
from engine.sandbox.errors import method_not_allowed, no_such_resource

if TYPE_CHECKING:
    from engine.sandbox.context import Context
    from engine.sandbox.http_server import Request
    from engine.sandbox.kinds import Kind

_SHORTEST = 2
_BY_METHOD = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


@dataclass(frozen=True, slots=True)
class Target:
    """What a request is about. ``namespace`` None: all of them, or a cluster-wide kind."""

    verb: str
    kind: Kind
    namespace: str | None = None
    name: str = ""
    subresource: str = ""

    @property
    def resource(self) -> str:
        """As in RBAC: `pods`, `pods/status`."""
        return (
            f"{self.kind.resource}/{self.subresource}" if self.subresource else self.kind.resource
        )


def route(request: Request, context: Context) -> Target:
    """Errors: 404 no such resource; 405 a method that it doesn't have."""
    steps = request.path.strip("/").split("/")
    if steps[0] == "api" and len(steps) > _SHORTEST:
        group, version, rest = "", steps[1], steps[2:]
    elif steps[0] == "apis" and len(steps) > _SHORTEST + 1:
        group, version, rest = steps[1], steps[2], steps[3:]
    else:
        raise no_such_resource()
    namespace: str | None = None
    if rest[0] == "namespaces" and len(rest) > _SHORTEST and rest[2] not in ("status", "finalize"):
        namespace, rest = rest[1], rest[2:]
    kind = kinds.BY_RESOURCE.get((group, version, rest[0]))
    if kind is None or not served(context, kind):
        raise no_such_resource()
    if (namespace is not None) > kind.namespaced or len(rest) > _SHORTEST + 1:
        raise no_such_resource()
    name, subresource = (*rest[1:], "", "")[:2]
    if subresource and subresource not in kind.subresources:
        raise no_such_resource()
    if name and kind.namespaced and namespace is None:
        raise no_such_resource()
    return Target(_verb(request, kind, namespace, name), kind, namespace, name, subresource)


def _verb(request: Request, kind: Kind, namespace: str | None, name: str) -> str:
    method = request.method
    if method in ("GET", "HEAD"):
        if name:
            return "get"
        return "watch" if request.query.get("watch") in ("true", "1") else "list"
    verb = _BY_METHOD.get(method, "")
    if verb == "delete" and not name:
        verb = "deletecollection"
    if verb not in kind.verbs or (kind.namespaced and namespace is None):
        raise method_not_allowed()
    subresource = request.path.rstrip("/").endswith(("/binding", "/eviction"))
    if (verb == "create" and name and not subresource) or (verb != "create" and subresource):
        raise method_not_allowed()
    if verb in ("update", "patch") and not name:
        raise method_not_allowed()
    return verb
