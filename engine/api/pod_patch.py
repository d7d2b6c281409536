"""Which fields of the pod a `podPatch` changes, for the limit on them.

A field is named as `kubectl explain` names it, without the indexes of lists.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from engine.kubeschema import KubernetesTypes
from engine.kubeschema.model import ANY, ListOf, MapOf, Struct, Type, type_below
from engine.kubeschema.strategic_merge import DIRECTIVE, DROP, ORDER, RETAIN

Field = tuple[str, ...]
Path = tuple[str | int, ...]


def field_path(types: KubernetesTypes, text: str) -> Field | None:
    """The steps of a dotted name, as `spec.containers.resources`; None if no pod has such a field.

    What follows a map is its key, dots and all: `metadata.annotations.example.com/team`.
    """
    kind: Type = types().kind("v1", "Pod")
    steps: list[str] = []
    rest = text
    while rest:
        while isinstance(kind, ListOf):
            kind = kind.item
        if isinstance(kind, MapOf):
            return (*steps, rest)
        step, _, rest = rest.partition(".")
        if not isinstance(kind, Struct) or step not in kind.fields:
            return None
        steps.append(step)
        kind = kind.fields[step]
    return tuple(steps) or None


def changed_fields(
    types: KubernetesTypes, patch: Mapping[str, Any]
) -> Iterator[tuple[Path, Field]]:
    """(path in the patch, field of the pod) of everything that the patch sets or removes.

    A directive that acts on all of a mapping or a list changes that as a whole, and so does a list
    that has no merge key.
    """
    yield from _changed(types().kind("v1", "Pod"), patch, (), ())


def _changed(kind: Type, value: Any, path: Path, field: Field) -> Iterator[tuple[Path, Field]]:
    if isinstance(value, Mapping) and value and not {DIRECTIVE, RETAIN} & value.keys():
        for key, item in value.items():
            name = str(key).removeprefix(ORDER).removeprefix(DROP)
            below = type_below(kind, name) if name == key else ANY
            yield from _changed(below, item, (*path, key), (*field, name))
    elif isinstance(value, list) and isinstance(kind, ListOf) and kind.merge_key:
        for index, item in enumerate(value):
            is_entry = isinstance(item, Mapping) and DIRECTIVE not in item
            rest = {k: v for k, v in item.items() if k != kind.merge_key} if is_entry else {}
            yield from _changed(kind.item, rest, (*path, index), field)
    else:
        yield path, field
