"""What the schemas say of a field: its type, default and meaning, and where it may stand.

Below the fields that are Kubernetes' own the table of its types goes on, which knows no meanings.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from engine.api.kubernetes_fields import pod_field
from engine.api.schema_messages import dotted, suggest
from engine.api.versions import API_VERSION, ENGINE_CONFIG, JOB_DEFAULTS, JOB_SPEC, VERSIONS
from engine.errors import UsageError
from engine.kubeschema import shipped_types
from engine.kubeschema.model import ListOf, MapOf, Scalar, Struct, Type
from engine.package_data import resource_dir

KINDS = (JOB_SPEC, JOB_DEFAULTS, ENGINE_CONFIG)
_SECTIONS = {JOB_SPEC: "spec", JOB_DEFAULTS: "spec", ENGINE_CONFIG: "defaults"}
"""Where each kind has the fields of a spec."""
_SCALARS = {
    "str": "string", "bool": "boolean", "int32": "integer", "int64": "integer", "float": "number",
    "qty": "quantity", "intstr": "integer or string", "bytes": "string", "any": "any value",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class FieldDoc:
    """One field."""

    name: str
    type: str
    """In words: `string or list of strings`."""
    description: str = ""
    """Empty where the schema has none."""
    required: bool = False
    default: Any = None
    """The engine's own; None where there is none."""
    example: Any = None
    """A value that it may have; None where the schema has none."""
    choices: tuple[str, ...] = ()
    """The only values that it, or an item of it, may have."""
    form: str = ""
    """What a value looks like."""
    kubectl: str = ""
    """What `kubectl explain` calls it, where Kubernetes defines it."""
    fields: tuple["FieldDoc", ...] = ()
    """Those of a mapping, or of the items of a list, with none of their own."""


def explain_field(kind: str, path: Sequence[str]) -> FieldDoc:
    """The field at `path` of a document of `kind`; steps into lists need no step of their own.

    Errors: UsageError for a field that there isn't, with what was probably meant.
    """
    node: Mapping[str, Any] | Type = _schema(kind)
    required = False
    for depth, step in enumerate(path):
        children = _children(node, path[:depth])
        if step not in children and (anything := _any_key(node)) is not None:
            node, required = anything, False
        elif step in children:
            required = step in _required(node)
            node = children[step]
        else:
            where = dotted([*path[:depth], step])
            hint = suggest(step, list(children)) or "it has no fields"
            raise UsageError(f'unknown field "{where}"', hint=hint)
    return _doc(path[-1] if path else kind, node, path, required)


def places_of_field(path: Sequence[str]) -> Iterator[str]:
    """`KIND path` for each kind that has the field, a field of a spec under its name there."""
    is_of_a_spec = path[:1] in (["spec"], ["defaults"])
    for kind in KINDS:
        there = [_SECTIONS[kind], *path[1:]] if is_of_a_spec else [*path]
        try:
            explain_field(kind, there)
        except UsageError:
            continue
        yield f"{kind} {dotted(there)}"


def _doc(
    name: str,
    node: Mapping[str, Any] | Type,
    path: Sequence[str],
    required: bool,
    *,
    with_fields: bool = True,
) -> FieldDoc:
    children = _children(node, path) if with_fields else {}
    fields = tuple(
        _doc(child, below, [*path, child], child in _required(node), with_fields=False)
        for child, below in children.items()
    )
    in_pod = pod_field(shipped_types, path)
    kubectl = in_pod[1] if in_pod else ""
    if not isinstance(node, Mapping):
        choices = node.choices if isinstance(node, Scalar) else ()
        return FieldDoc(
            name, _type_of(node), "", required, choices=choices, kubectl=kubectl, fields=fields
        )
    return FieldDoc(
        name,
        _words(node),
        str(node.get("description", "")),
        required,
        node.get("default"),
        next(iter(node.get("examples", ())), None),
        _choices(node),
        str(node.get("patternErrorMessage", "")),
        kubectl,
        fields,
    )


def _children(
    node: Mapping[str, Any] | Type, path: Sequence[str]
) -> dict[str, Mapping[str, Any] | Type]:
    """The fields that a value, or each item of a list, has."""
    if not isinstance(node, Mapping):
        while isinstance(node, ListOf | MapOf):
            node = node.item if isinstance(node, ListOf) else node.value
        return {**node.fields} if isinstance(node, Struct) else {}
    item = _item(node)
    if "properties" in item:
        return {name: _resolved(below, item) for name, below in item["properties"].items()}
    found = pod_field(shipped_types, path)
    return _children(found[0], path) if found else {}


def _any_key(node: Mapping[str, Any] | Type) -> Mapping[str, Any] | Type | None:
    """What the values of a mapping are whose keys are the user's own."""
    if not isinstance(node, Mapping):
        return node.value if isinstance(node, MapOf) else None
    values = _item(node).get("additionalProperties")
    return _resolved(values, node) if isinstance(values, Mapping) else None


def _required(node: Mapping[str, Any] | Type) -> Sequence[str]:
    return _item(node).get("required", ()) if isinstance(node, Mapping) else ()


def _item(node: Mapping[str, Any]) -> Mapping[str, Any]:
    return _resolved(node["items"], node) if "items" in node else node


def _choices(node: Mapping[str, Any]) -> tuple[str, ...]:
    item = _item(node)
    only = [item["const"]] if "const" in item else node.get("enum", ())
    return tuple(map(str, item.get("enum", only)))


def _words(node: Mapping[str, Any]) -> str:
    kinds = node.get("type", "string" if "enum" in node or "const" in node else "any value")
    return " or ".join(
        _in_words(kind, node) for kind in ([kinds] if isinstance(kinds, str) else kinds)
    )


def _in_words(kind: str, node: Mapping[str, Any]) -> str:
    if kind == "array":
        return f"list of {_plural(_words(_item(node)))}"
    if kind == "object":
        values = _any_key(node)
        return f"mapping of {_plural(_words(values))}" if isinstance(values, Mapping) else "mapping"
    return kind


def _type_of(kind: Type) -> str:
    match kind:
        case ListOf(item):
            return f"list of {_plural(_type_of(item))}"
        case MapOf(value):
            return f"mapping of {_plural(_type_of(value))}"
        case Scalar(name):
            return _SCALARS.get(name, name)
        case _:
            return "mapping"


def _plural(words: str) -> str:
    def one(kind: str) -> str:
        head, *rest = kind.split(" ", 1)
        return " ".join(["quantities" if head == "quantity" else f"{head}s", *rest])

    return " or ".join(one(kind) for kind in words.split(" or "))


def _resolved(node: Mapping[str, Any], holder: Mapping[str, Any]) -> Mapping[str, Any]:
    """`node` with what its `$ref` leads to; `holder` says which file a relative one is of."""
    file = node.get("$file") or holder.get("$file")
    own = {**node, "$file": file}
    if "$ref" not in node:
        return own
    name, _, pointer = node["$ref"].partition("#")
    target: Any = _file(name or str(file))
    for step in filter(None, pointer.split("/")):
        target = target[step]
    rest = {key: value for key, value in own.items() if key not in ("$ref", "$file")}
    return {**_resolved({**target, "$file": name or file}, own), **rest}


def _schema(kind: str) -> Mapping[str, Any]:
    name = VERSIONS[API_VERSION, kind].schema
    return {**_file(name), "$file": name}


@cache
def _file(name: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = json.loads((resource_dir("schemas") / name).read_bytes())
    return found
