"""From an OpenAPI v2 document of Kubernetes to the table of the types that the engine needs."""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

CORE = "io.k8s.api.core.v1"
NEEDED = tuple(f"{CORE}.{kind}" for kind in ("Pod", "Secret", "ConfigMap"))
"""What the engine renders."""
SERVED = (
    *(
        f"{CORE}.{kind}"
        for kind in ("Binding", "Event", "Namespace", "Node", "ResourceQuota", "ServiceAccount")
    ),
    "io.k8s.api.authorization.v1.SelfSubjectAccessReview",
    "io.k8s.api.authorization.v1.SelfSubjectRulesReview",
    "io.k8s.api.coordination.v1.Lease",
    "io.k8s.api.events.v1.Event",
    "io.k8s.api.policy.v1.Eviction",
)
"""What the sandbox serves besides."""

_LEAVES = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": "qty",
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": "intstr",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Time": "time",
    "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime": "time",
}
_PLAIN = re.compile(r"[\w./-]*")


class OpenAPIError(ValueError):
    """The document isn't OpenAPI v2, or not that of a Kubernetes API server."""


def table_from_openapi(
    document: Any,
    keeps_zero: Collection[tuple[str, str]] = (),
    kinds: Collection[str] = (*NEEDED, *SERVED),
) -> str:
    """The text of the table of these kinds, with all that they are made of.

    `keeps_zero`: (type, field) of what keeps its zero value though it isn't required, which
    OpenAPI doesn't tell. Errors: OpenAPIError.
    """
    definitions = document.get("definitions") if isinstance(document, dict) else None
    if not isinstance(definitions, dict):
        raise OpenAPIError("this is no OpenAPI v2 document: it has no definitions")
    for name in NEEDED:
        if not isinstance(definitions.get(name), dict):
            raise OpenAPIError(f"this is no OpenAPI of Kubernetes: it has no {name}")
    try:
        return "\n".join(_lines(definitions, frozenset(keeps_zero), kinds)) + "\n"
    except (AttributeError, TypeError, KeyError) as error:
        raise OpenAPIError(f"this OpenAPI v2 document can't be understood: {error}") from None


def _lines(
    definitions: Mapping[str, Any],
    keeps_zero: Collection[tuple[str, str]],
    kinds: Collection[str],
) -> Iterator[str]:
    roots = [name for name in kinds if name in definitions]
    found = _closure(definitions, roots)
    for package in sorted({name.rpartition(".")[0] for name in found}):
        names = sorted(name for name in found if name.rpartition(".")[0] == package)
        yield f"[{f'{package} {_api_version(definitions, names)}'.strip()}]"
        for name in names:
            yield from _struct(definitions, name, keeps_zero)


def _closure(definitions: Mapping[str, Any], roots: list[str]) -> set[str]:
    found: set[str] = set()
    todo = [*roots]
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo.extend(_references(definitions, definitions[name]))
    return found


def _references(definitions: Mapping[str, Any], value: Any) -> Iterator[str]:
    """Names of the structs that a definition refers to."""
    if isinstance(value, list):
        for item in value:
            yield from _references(definitions, item)
    elif isinstance(value, dict):
        name = _target(value)
        if name and name not in _LEAVES and _is_struct(definitions, name):
            yield name
        for item in value.values():
            yield from _references(definitions, item)


def _target(schema: Mapping[str, Any]) -> str:
    reference = schema.get("$ref")
    return reference.rpartition("/")[2] if isinstance(reference, str) else ""


def _is_struct(definitions: Mapping[str, Any], name: str) -> bool:
    return "properties" in definitions.get(name, {})


def _api_version(definitions: Mapping[str, Any], names: list[str]) -> str:
    """The one apiVersion of the kinds of a package; some kinds of it belong to many groups."""
    for name in names:
        kinds = definitions[name].get("x-kubernetes-group-version-kind", ())
        if len(kinds) == 1:
            group, version = kinds[0]["group"], kinds[0]["version"]
            return f"{group}/{version}" if group else str(version)
    return ""


def _struct(
    definitions: Mapping[str, Any], full_name: str, keeps_zero: Collection[tuple[str, str]]
) -> Iterator[str]:
    definition = definitions[full_name]
    name = full_name.rpartition(".")[2]
    yield f"{name}!" if definition.get("x-kubernetes-map-type") == "atomic" else name
    required = definition.get("required", ())
    for field, schema in sorted(definition.get("properties", {}).items()):
        kind = _type(definitions, schema)
        is_scalar = schema.get("type") in ("string", "integer", "number", "boolean")
        kept = is_scalar and (field in required or (name, field) in keeps_zero)
        yield f" {field} {kind}{'?' if kept else ''}"


def _type(definitions: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    name = _target(schema)
    if name in _LEAVES:
        return _LEAVES[name]
    if name:
        return name.rpartition(".")[2] if _is_struct(definitions, name) else "any"
    match schema.get("type"):
        case "string":
            return _string(schema)
        case "integer":
            return "int32" if schema.get("format") == "int32" else "int64"
        case "number":
            return "float"
        case "boolean":
            return "bool"
        case "array":
            return _list(definitions, schema)
        case "object" if isinstance(schema.get("additionalProperties"), dict):
            atomic = "!" if schema.get("x-kubernetes-map-type") == "atomic" else ""
            return f"{{{_type(definitions, schema['additionalProperties'])}}}{atomic}"
        case _:
            return "any"


def _string(schema: Mapping[str, Any]) -> str:
    match schema.get("format"):
        case "byte":
            return "bytes"
        case "int-or-string":
            return "intstr"
        case "date-time":
            return "time"
    choices = schema.get("enum") or ()
    if choices and all(isinstance(value, str) and _PLAIN.fullmatch(value) for value in choices):
        return f"str({','.join(choices)})"
    return "str"


def _list(definitions: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    item = f"[{_type(definitions, schema['items'])}]"
    patched = "merge" in schema.get("x-kubernetes-patch-strategy", "").split(",")
    merge_key = schema.get("x-kubernetes-patch-merge-key", "") if patched else ""
    match schema.get("x-kubernetes-list-type"):
        case "map":
            keys = list(schema["x-kubernetes-list-map-keys"])
            if merge_key in keys:
                keys.remove(merge_key)
                return f"{item}{'+'.join((merge_key, *keys))}"
            return f"{item}{'+'.join(keys)}!"
        case "set":
            return f"{item}*" if patched else f"{item}*!"
        case _ if merge_key:
            return f"{item}~{merge_key}"
        case _:
            return item
