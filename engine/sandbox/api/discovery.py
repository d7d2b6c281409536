"""What the server has: versions, groups and resources, for clients that ask before they act."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.sandbox import kinds
from engine.sandbox.admission.custom_resources import served

if TYPE_CHECKING:
    from engine.sandbox.context import Context
    from engine.sandbox.kinds import Kind
    from engine.sandbox.values import Obj

_AUTHORIZATION = "authorization.k8s.io"
REVIEW_PATH = f"/apis/{_AUTHORIZATION}/v1/selfsubjectaccessreviews"


def discover(context: Context, path: str) -> Obj | None:
    """The discovery document at a path; None where there is none."""
    steps = path.strip("/").split("/")
    match steps:
        case ["version"]:
            return _version(context.minor)
        case ["api"]:
            address = [{"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1"}]
            return {
                "kind": "APIVersions",
                "versions": ["v1"],
                "serverAddressByClientCIDRs": address,
            }
        case ["api", "v1"]:
            return _resources(context, "", "v1")
        case ["apis"]:
            groups = [_group(*one) for one in _groups(context)]
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
        case ["apis", group] if group in dict(_groups(context)):
            version = dict(_groups(context))[group]
            return {"kind": "APIGroup", "apiVersion": "v1", **_group(group, version)}
        case ["apis", group, version] if (group, version) in _groups(context):
            return _resources(context, group, version)
    return None


def _version(minor: int) -> Obj:
    return {
        "major": "1",
        "minor": str(minor),
        "gitVersion": f"v1.{minor}.0",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "2025-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "",
        "platform": "sandbox",
    }


def _groups(context: Context) -> list[tuple[str, str]]:
    """(group, version) of each group: none has two versions."""
    found = {(kind.group, kind.version) for kind in kinds.ALL if served(context, kind)}
    return sorted({one for one in found if one[0]} | {(_AUTHORIZATION, "v1")})


def _group(name: str, number: str) -> Obj:
    version = {"groupVersion": f"{name}/{number}", "version": number}
    return {"name": name, "versions": [version], "preferredVersion": version}


def _resources(context: Context, group: str, version: str) -> Obj:
    rows: list[Obj] = []
    for kind in kinds.ALL:
        if (kind.group, kind.version) == (group, version) and served(context, kind):
            rows += _rows(kind)
    if group == _AUTHORIZATION:
        name, kind_name = "selfsubjectaccessreviews", "SelfSubjectAccessReview"
        row = {"name": name, "singularName": kind_name.lower(), "namespaced": False}
        rows.append({**row, "kind": kind_name, "verbs": ["create"]})
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": f"{group}/{version}" if group else version,
        "resources": rows,
    }


def _rows(kind: Kind) -> list[Obj]:
    row: Obj = {
        "name": kind.resource,
        "singularName": kind.kind.lower(),
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": list(kind.verbs),
    }
    if kind.short:
        row["shortNames"] = list(kind.short)
    if kind.categories:
        row["categories"] = list(kind.categories)
    below = []
    for name in kind.subresources:
        verbs = ["get", "patch", "update"]
        sub_kind = kind.kind
        if name in ("binding", "eviction"):
            verbs, sub_kind = ["create"], name.capitalize()
        elif name == "log":
            verbs = ["get"]
        elif name == "finalize":
            verbs = ["update"]
        entry: Obj = {
            "name": f"{kind.resource}/{name}",
            "singularName": "",
            "namespaced": kind.namespaced,
            "kind": sub_kind,
            "verbs": verbs,
        }
        if name == "eviction":
            entry.update(group="policy", version="v1")
        below.append(entry)
    return [row, *below]
