"""The table of types as text, and its reader.

    [io.k8s.api.core.v1 v1]
    Toleration
     key str
     tolerationSeconds int64?

A line in brackets names a package, and the apiVersion of the kinds in it, if there is one. Below
it stand its types, each with a field per line. A field's type is a scalar (`str int32 int64 float
bool qty intstr time bytes any`) or another type's name, which is looked for in the same package
first.

| written | means |
|---|---|
| `int64?` | the zero value is kept |
| `str(a,b)` | one of these values |
| `{T}`, `{T}!` | a map; owned as a whole by apply |
| `[T]` | a list, owned by apply and replaced by a patch as a whole |
| `[T]a+b` | items known to apply by `a` and `b`, merged by a patch by `a` |
| `[T]a!` | items known to apply by `a`, replaced by a patch as a whole |
| `[T]~a` | owned by apply as a whole, merged by a patch by `a` |
| `[T]*`, `[T]*!` | a set; replaced by a patch as a whole |
| `Name!` | as a type's own line: owned as a whole by apply |
"""

import re

from engine.kubeschema.model import SCALARS, ListOf, MapOf, Scalar, Schema, Struct, Type

_LIST = re.compile(r"\[(.+)\](~?)(\*|[\w+]*)(!?)")
_MAP = re.compile(r"\{(.+)\}(!?)")
_SCALAR = re.compile(r"([a-z]\w*)(?:\(([^)]*)\))?(\??)")


def read_table(text: str) -> Schema:
    """Errors: KeyError for a type that isn't there."""
    structs: dict[str, Struct] = {}
    by_name: dict[str, Struct] = {}
    kinds: dict[tuple[str, str], Struct] = {}
    fields: list[tuple[Struct, str, str]] = []
    package = api_version = ""
    struct: Struct | None = None
    for line in text.splitlines():
        if not line or line[0] == "#":
            continue
        if line[0] == "[":
            package, _, api_version = line[1:-1].partition(" ")
        elif line[0] != " ":
            name = line.rstrip("!")
            struct = Struct(name, package, atomic=line.endswith("!"))
            structs[struct.full_name] = struct
            by_name.setdefault(name, struct)
            if api_version:
                kinds[api_version, name] = struct
        elif struct is not None:
            name, _, kind = line[1:].partition(" ")
            fields.append((struct, name, kind))
    reader = _Reader(structs, by_name)
    for struct, name, kind in fields:
        struct.fields[name] = reader.read(kind, struct.package)
    return Schema(structs, kinds)


class _Reader:
    """Turns a field's type from text to objects; most types are written often, and read once."""

    def __init__(self, structs: dict[str, Struct], by_name: dict[str, Struct]) -> None:
        self._structs = structs
        self._by_name = by_name
        self._known: dict[tuple[str, str], Type] = {}

    def read(self, text: str, package: str) -> Type:
        key = (text, package)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._read(text, package)
        return found

    def _read(self, text: str, package: str) -> Type:
        if found := _LIST.fullmatch(text):
            return self._list(found, package)
        if found := _MAP.fullmatch(text):
            return MapOf(self.read(found[1], package), atomic=bool(found[2]))
        found = _SCALAR.fullmatch(text)
        if found and found[1] in SCALARS:
            choices = tuple(found[2].split(",")) if found[2] is not None else ()
            return Scalar(found[1], keeps_zero=bool(found[3]), choices=choices)
        own = self._structs.get(f"{package}.{text}")
        return own if own is not None else self._by_name[text]

    def _list(self, found: re.Match[str], package: str) -> ListOf:
        item = self.read(found[1], package)
        by_patch_alone, keys, replaced = bool(found[2]), found[3], bool(found[4])
        if keys == "*":
            return ListOf(item, is_set=True, merges=not replaced)
        names = tuple(keys.split("+")) if keys else ()
        merge_key = names[0] if names and not replaced else ""
        return ListOf(item, () if by_patch_alone else names, merge_key=merge_key)
