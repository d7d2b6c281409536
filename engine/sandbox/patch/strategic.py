"""Strategic merge patch: a merge patch that merges lists by the keys of the kind's schema."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.kubeschema.model import ListOf, MapOf, Scalar, Struct, Type
from engine.sandbox.errors import bad_request

if TYPE_CHECKING:
    from engine.sandbox.values import Json, Obj

_ORDER = "$setElementOrder/"
_DROP = "$deleteFromPrimitiveList/"
_ANY = Scalar("any")


def strategic_merge(kind: Type, doc: Obj, patch: Obj) -> Obj:
    """The patched document. ``doc`` may be mutated.

    Errors: 400 for a directive that doesn't exist or a list item without its merge key.
    """
    directive = patch.get("$patch")
    if directive == "delete":
        return {}
    if directive == "replace":
        return {name: value for name, value in patch.items() if name != "$patch"}
    if directive not in (None, "merge"):
        raise bad_request(f"Unknown patch type: {directive}")
    for name, value in patch.items():
        if name == "$patch" or name.startswith((_ORDER, "$retainKeys")):
            continue
        if name.startswith(_DROP):
            _drop(doc, name.removeprefix(_DROP), value)
        elif value is None:
            doc.pop(name, None)
        else:
            doc[name] = _merge(_field(kind, name), doc.get(name), value)
            if doc[name] == {} and isinstance(value, dict) and value.get("$patch") == "delete":
                del doc[name]
    for name, value in patch.items():
        if name.startswith(_ORDER):
            _order(_field(kind, name.removeprefix(_ORDER)), doc, name.removeprefix(_ORDER), value)
    if "$retainKeys" in patch:
        return {name: value for name, value in doc.items() if name in patch["$retainKeys"]}
    return doc


def _field(kind: Type, name: str) -> Type:
    if isinstance(kind, Struct):
        return kind.fields.get(name, _ANY)
    return kind.value if isinstance(kind, MapOf) else _ANY


def _merge(kind: Type, current: Json, value: Json) -> Json:
    if isinstance(value, dict):
        return strategic_merge(kind, current if isinstance(current, dict) else {}, value)
    if isinstance(kind, ListOf) and isinstance(value, list):
        have = current if isinstance(current, list) else []
        if kind.merges:
            return have + [item for item in value if item not in have]
        if kind.merge_key:
            return _merge_items(kind, have, value)
    return value


def _merge_items(kind: ListOf, have: list[Json], patch: list[Json]) -> list[Json]:
    key = kind.merge_key
    if any(isinstance(item, dict) and item.get("$patch") == "replace" for item in patch):
        return [item for item in patch if "$patch" not in item]
    out = list(have)
    for item in patch:
        if not isinstance(item, dict) or key not in item:
            raise bad_request(f"map: {item} does not contain declared merge key: {key}")
        at = next((i for i, old in enumerate(out) if old.get(key) == item[key]), None)
        if item.get("$patch") == "delete":
            out = [old for old in out if old.get(key) != item[key]]
        elif at is None:
            out.append(strategic_merge(kind.item, {}, item))
        else:
            out[at] = strategic_merge(kind.item, dict(out[at]), item)
    return out


def _drop(doc: Obj, name: str, values: Json) -> None:
    if isinstance(doc.get(name), list):
        doc[name] = [item for item in doc[name] if item not in values]


def _order(kind: Type, doc: Obj, name: str, order: list[Json]) -> None:
    """Put the listed items in their order; what the patch doesn't know keeps its place behind."""
    items = doc.get(name)
    if not isinstance(items, list):
        return
    if isinstance(kind, ListOf) and kind.merge_key:
        key = kind.merge_key
        wanted = [entry.get(key) for entry in order]
        rank = {value: at for at, value in enumerate(wanted)}
        items.sort(key=lambda item: rank.get(item.get(key), len(rank)))
    else:
        rank = {value: at for at, value in enumerate(order)}
        items.sort(key=lambda item: rank.get(item, len(rank)))
