"""The documentation of a field in the schemas: its type, default and meaning."""

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import getitem
from typing import Any

from msgspec import Struct

from engine.api.field_kinds import FieldKind, field_kind
from engine.api.kubernetes_schema import SHIPPED
from engine.api.schema_messages import dotted, suggest
from engine.api.versions import ENGINE_CONFIG, JOB_DEFAULTS, JOB_SPEC
from engine.errors import UsageError

KINDS = (JOB_SPEC, JOB_DEFAULTS, ENGINE_CONFIG)


class FieldDoc(Struct, frozen=True):
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
    of_kubernetes: bool = False
    """Whether Kubernetes defines its fields."""
    change: FieldKind | None = None
    """What a change of it does; None for what is of no job."""
    fields: tuple["FieldDoc", ...] = ()
    """Those of a mapping, or of the items of a list, with none of their own."""


def explain_field(kind: str, path: Sequence[str]) -> FieldDoc:
    """The field at `path` of a document of `kind`; steps into lists need no step of their own.

    Errors: UsageError for a field that there isn't, with what was probably meant.
    """
    node: Mapping[str, Any] = SHIPPED.definitions[kind]
    required = False
    for depth, step in enumerate(path):
        children = _children(node)
        if step not in children and (anything := _any_key(node)) is not None:
            node, required = anything, False
        elif step in children:
            required = step in _required(node)
            node = children[step]
        else:
            where = dotted([*path[:depth], step])
            hint = suggest(step, list(children)) or "it has no fields"
            raise UsageError(f'unknown field "{where}"', hint=hint)
    return _doc(kind, path[-1] if path else kind, node, path, required)


def _doc(
    kind: str,
    name: str,
    node: Mapping[str, Any],
    path: Sequence[str],
    required: bool,
    *,
    with_fields: bool = True,
) -> FieldDoc:
    children = _children(node) if with_fields else {}
    fields = tuple(
        _doc(kind, child, below, [*path, child], child in _required(node), with_fields=False)
        for child, below in children.items()
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
        bool(_item(node).get("$kubernetes")),
        field_kind(path) if kind != ENGINE_CONFIG and len(path) > 1 else None,
        fields,
    )


def _children(node: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The fields that a value, or each item of a list, has."""
    fields = _item(node).get("properties", {})
    return {name: _resolved(below) for name, below in fields.items()}


def _any_key(node: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """What the values of a mapping are whose keys are the user's own."""
    values = _item(node).get("additionalProperties")
    return _resolved(values) if isinstance(values, Mapping) else None


def _required(node: Mapping[str, Any]) -> Sequence[str]:
    required: Sequence[str] = _item(node).get("required", ())
    return required


def _item(node: Mapping[str, Any]) -> Mapping[str, Any]:
    return _resolved(node["items"]) if "items" in node else node


def _choices(node: Mapping[str, Any]) -> tuple[str, ...]:
    item = _item(node)
    only = [item["const"]] if "const" in item else node.get("enum", ())
    return tuple(str(one) for one in item.get("enum", only) if one is not None)


def _words(node: Mapping[str, Any]) -> str:
    kinds = node.get("type", "string" if "enum" in node or "const" in node else "any value")
    names = [kinds] if isinstance(kinds, str) else kinds
    return " or ".join(_in_words(kind, node) for kind in names if kind != "null")


def _in_words(kind: str, node: Mapping[str, Any]) -> str:
    if kind == "array":
        return f"list of {_plural(_words(_item(node)))}"
    if kind == "object":
        values = _any_key(node)
        return f"mapping of {_plural(_words(values))}" if isinstance(values, Mapping) else "mapping"
    return kind


def _plural(words: str) -> str:
    def one(kind: str) -> str:
        head, *rest = kind.split(" ", 1)
        return " ".join([f"{head}s", *rest])

    return " or ".join(one(kind) for kind in words.split(" or "))


def _resolved(node: Mapping[str, Any]) -> Mapping[str, Any]:
    """`node` with what its `$ref` leads to."""
    reference = next((one for one in (node, *node.get("allOf", ())) if "$ref" in one), None)
    if reference is None:
        return node
    rest = {key: value for key, value in node.items() if key not in ("$ref", "allOf")}
    steps = reference["$ref"].split("/")[2:]
    if steps[0] in ("types", "patch"):
        rest["$kubernetes"] = True
    target: Any = reduce(getitem, steps, SHIPPED.definitions)
    return {**_resolved(target), **rest}
