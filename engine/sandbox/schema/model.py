"""The table of types as objects that decoding, patching and applying walk along."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, field

from engine.sandbox.schema.types import TYPES


@dataclass(frozen=True, slots=True)
class Scalar:
    """A leaf. ``pointer``: the zero value is kept, as for a pointer field in Go."""

    name: str
    pointer: bool = False


@dataclass(frozen=True, slots=True)
class MapOf:
    """A map from string to ``value``; atomic: apply owns it as a whole."""

    value: Type
    atomic: bool = False


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list: atomic without keys, else a set or merged by the items' keys."""

    item: Type
    keys: tuple[str, ...] = ()
    is_set: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Struct:
    """A struct with named fields; atomic: apply owns it as a whole."""

    name: str
    atomic: bool = False
    fields: dict[str, Type] = field(default_factory=dict, compare=False)


Type = Scalar | MapOf | ListOf | Struct
SCALARS = frozenset({"str", "int", "bool", "qty", "intstr", "time", "bytes", "any"})


class Schema:
    """Every type of the table."""

    def __init__(self) -> None:
        self._structs: dict[str, Struct] = {}
        lines = [line.split() for line in TYPES.splitlines() if line.strip()]
        for head, *_ in lines:
            name = head.rstrip("!")
            self._structs[name] = Struct(name, atomic=head.endswith("!"))
        for head, *fields in lines:
            struct = self._structs[head.rstrip("!")]
            for text in fields:
                name, _, kind = text.partition("=")
                struct.fields[name] = self._read(kind.partition("@")[0])

    def _read(self, text: str) -> Type:
        if found := re.fullmatch(r"\[(.+)\](\*|[\w+]*)", text):
            inner, keys = found.groups()
            names = tuple(filter(None, keys.split("+"))) if keys != "*" else ()
            return ListOf(self._read(inner), names, is_set=keys == "*")
        if found := re.fullmatch(r"\{(.+)\}(!?)", text):
            return MapOf(self._read(found[1]), atomic=bool(found[2]))
        name = text.rstrip("?")
        if name in SCALARS:
            return Scalar(name, pointer=text.endswith("?"))
        return self._structs[name]

    def struct(self, name: str) -> Struct:
        return self._structs[name]

    def has(self, struct: str, name: str) -> bool:
        return name in self._structs[struct].fields

    def all(self) -> dict[str, Struct]:
        return self._structs


@functools.cache
def schema() -> Schema:
    """The schema, read once per process."""
    return Schema()
