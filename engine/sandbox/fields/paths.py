"""Objects as sets of field paths, in the form of managedFields' ``fieldsV1``.

A path is a tuple of elements: ``f:name`` a field, ``k:{...}`` a list item by its keys, ``v:...`` a
member of a set. Plain Python sets of such tuples give union, difference and intersection for free.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from engine.kubeschema.model import ListOf, MapOf, Scalar, Struct, Type

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.sandbox.values import Json, Obj

Path = tuple[str, ...]
ITEM = object()
"""The value of a list item's own path: the item exists, whatever is in it."""

UNOWNED: frozenset[Path] = frozenset(
    {
        ("f:apiVersion",),
        ("f:kind",),
        ("f:metadata",),
        *(
            ("f:metadata", f"f:{name}")
            for name in (
                "name",
                "namespace",
                "uid",
                "resourceVersion",
                "generation",
                "creationTimestamp",
                "deletionTimestamp",
                "deletionGracePeriodSeconds",
                "selfLink",
                "managedFields",
            )
        ),
    }
)
_ALWAYS_THERE: frozenset[Path] = frozenset(
    {(), ("f:metadata",), ("f:spec",), ("f:status",), ("f:spec", "f:containers")}
)
"""What Go writes for an object even when it is empty, so that nobody ever adds it."""
_WHOLE = Scalar("any")


def flatten(struct: Struct, obj: Obj, *, with_parents: bool = False) -> dict[Path, Json]:
    """Every path of the object and the value at it; what nobody can own is left out.

    ``with_parents``: maps, structs and merged lists are paths too, as plain writes own them.
    """
    out: dict[Path, Json] = {}
    _walk(struct, obj, (), out, with_parents)
    for path in UNOWNED:
        out.pop(path, None)
    return out


def _walk(kind: Type, value: Json, path: Path, out: dict[Path, Json], parents: bool) -> None:
    if isinstance(kind, (Struct, MapOf)) and not kind.atomic and isinstance(value, dict):
        if not value:
            out[path] = value
        elif parents and path not in _ALWAYS_THERE:
            out[path] = ITEM
        inner = None if isinstance(kind, Struct) else kind.value
        for name, item in value.items():
            below = inner or kind.fields.get(name, _WHOLE)  # type: ignore[union-attr]
            if isinstance(below, Scalar):
                out[(*path, "f:" + name)] = item
            else:
                _walk(below, item, (*path, "f:" + name), out, parents)
    elif isinstance(kind, ListOf) and (kind.keys or kind.is_set) and value:
        if parents and path not in _ALWAYS_THERE:
            out[path] = ITEM
        for item in value:
            at = (*path, element(kind, item))
            out[at] = ITEM
            if kind.keys:
                _walk(kind.item, item, at, out, parents)
    else:
        out[path] = value


def element(kind: ListOf, item: Json) -> str:
    """The name of a list item in a path: its keys, or itself in a set."""
    if kind.is_set or not isinstance(item, dict):
        return "v:" + json.dumps(item, separators=(",", ":"))
    keys = {key: item[key] for key in kind.keys if key in item}
    return "k:" + json.dumps(keys, separators=(",", ":"), sort_keys=True)


def to_fields_v1(paths: Iterable[Path]) -> Obj:
    """The tree of FieldsV1 for these paths."""
    tree: Obj = {}
    marked = set(paths)
    for path in sorted(marked):
        node = tree
        for step in path:
            node = node.setdefault(step, {})
    _mark(tree, (), marked)
    return tree


def _mark(tree: Obj, path: Path, marked: set[Path]) -> None:
    """Add ``.`` where a path stands itself and has paths below it."""
    for step, below in list(tree.items()):
        at = (*path, step)
        _mark(below, at, marked)
        if below and at in marked:
            tree[step] = {".": {}, **below}


def from_fields_v1(tree: Obj) -> set[Path]:
    """The paths of a tree of FieldsV1."""
    out: set[Path] = set()
    _collect(tree, (), out)
    return out


def _collect(tree: Obj, path: Path, out: set[Path]) -> None:
    if not tree and path:
        out.add(path)
    for step, below in tree.items():
        if step == ".":
            out.add(path)
        else:
            _collect(below, (*path, step), out)


def readable(path: Path) -> str:
    """As conflicts name it: ``.spec.containers[name="main"].image``."""
    text = ""
    for step in path:
        mark, _, rest = step.partition(":")
        if mark == "f":
            text += f".{rest}"
        elif mark == "k":
            keys = ",".join(f"{key}={json.dumps(value)}" for key, value in json.loads(rest).items())
            text += f"[{keys}]"
        else:
            text += f"[={rest}]"
    return text


def is_key_of_item(path: Path) -> bool:
    """Whether the path is one of the fields by which its list item is known."""
    item = path[-2] if len(path) > 1 else ""
    return item.startswith("k:") and path[-1].removeprefix("f:") in json.loads(item[2:])


def remove(kind: Type, value: Json, path: Path) -> None:
    """Take what stands at ``path`` out of a mutable object; gone already is fine."""
    for step in path[:-1]:
        found = _step(kind, value, step)
        if found is None:
            return
        kind, value = found
    last = path[-1]
    if last.startswith("f:"):
        if isinstance(value, dict):
            value.pop(last[2:], None)
    elif isinstance(kind, ListOf) and isinstance(value, list):
        value[:] = [item for item in value if element(kind, item) != last]


def _step(kind: Type, value: Json, step: str) -> tuple[Type, Json] | None:
    if step.startswith("f:"):
        if not isinstance(value, dict) or step[2:] not in value:
            return None
        below = kind.value if isinstance(kind, MapOf) else _WHOLE
        if isinstance(kind, Struct):
            below = kind.fields.get(step[2:], _WHOLE)
        return below, value[step[2:]]
    if isinstance(kind, ListOf) and isinstance(value, list):
        for item in value:
            if element(kind, item) == step:
                return kind.item, item
    return None
