"""The types of Kubernetes' fields, as objects that decoding walks along."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.api.kubernetes_schema import SHIPPED

if TYPE_CHECKING:
    from collections.abc import Mapping

_POINTERS = Path(__file__).with_name("pointers.txt")
_LEAVES = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": "qty",
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": "intstr",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Time": "time",
    "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime": "time",
}
_SCALARS = {"string": "str", "number": "float", "boolean": "bool"}


@dataclass(frozen=True, slots=True)
class Scalar:
    """A leaf.

    ``keeps_zero``: an empty string, 0 or false is kept when an object is written, as Go does for
    pointers and for required fields; elsewhere it is left out.
    """

    name: str
    keeps_zero: bool = False


@dataclass(frozen=True, slots=True)
class MapOf:
    """A map from string to ``value``."""

    value: Type


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list."""

    item: Type


@dataclass(frozen=True, slots=True, eq=False)
class Struct:
    """A mapping with named fields."""

    name: str
    fields: dict[str, Type] = field(default_factory=dict, compare=False, repr=False)


Type = Scalar | MapOf | ListOf | Struct


@cache
def struct_of(api_version: str, kind: str) -> Struct:
    """The type of a kind's objects. Errors: KeyError."""
    return _structs()[SHIPPED.name_of(api_version, kind)]


@cache
def _structs() -> Mapping[str, Struct]:
    definitions = SHIPPED.definitions["types"]
    structs = {
        name: Struct(name.rpartition(".")[2])
        for name, node in definitions.items()
        if "properties" in node
    }
    lines = _POINTERS.read_text(encoding="utf-8").splitlines()
    words = [line.split() for line in lines if line and not line.startswith("#")]
    pointers = {(name, field) for name, *fields in words for field in fields}
    for name, struct in structs.items():
        node = definitions[name]
        for key, below in node["properties"].items():
            kept = key in node.get("required", ()) or (struct.name, key) in pointers
            struct.fields[key] = _type(structs, below, keeps_zero=kept)
    return structs


def _type(structs: Mapping[str, Struct], node: Any, *, keeps_zero: bool = False) -> Type:
    reference = (node["allOf"][0] if "allOf" in node else node).get("$ref")
    if reference is not None:
        name = reference.rpartition("/")[2]
        return structs[name] if name in structs else Scalar(_LEAVES.get(name, "any"))
    kind = node["type"] if isinstance(node["type"], str) else node["type"][0]
    if kind == "array":
        return ListOf(_type(structs, node["items"]))
    if kind == "object":
        values = node.get("additionalProperties")
        return Scalar("any") if values is None else MapOf(_type(structs, values))
    name = {"byte": "bytes"}.get(node.get("format", ""), _SCALARS.get(kind, ""))
    return Scalar(name or node.get("format", "int64"), keeps_zero=keeps_zero)
