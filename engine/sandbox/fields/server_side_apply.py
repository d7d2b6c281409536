"""Server-side apply: merge what is applied, prune what its manager dropped, name the conflicts."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.kubeschema.model import ListOf, MapOf, Scalar, Struct, Type
from engine.sandbox.errors import StatusError
from engine.sandbox.fields.managers import Manager, compare, read_managers, write_managers
from engine.sandbox.fields.paths import Path, element, flatten, is_key_of_item, readable, remove

if TYPE_CHECKING:
    from engine.sandbox.values import Json, Obj


@dataclass(frozen=True, slots=True)
class Applier:
    """Who applies, as what, and whether other managers' fields may be taken."""

    name: str
    api_version: str
    subresource: str
    force: bool
    now: str


def apply(struct: Struct, live: Obj, config: Obj, applier: Applier) -> Obj:
    """The object after the apply. ``live`` may be mutated; ``config`` is only read.

    Errors: 409 with a cause per field that another manager owns and this one would change.
    """
    before: Obj = json.loads(json.dumps(live))
    managers = read_managers(live)
    key = (applier.name, "Apply", applier.subresource)
    mine = next((m for m in managers if m.key == key), None)
    others = [m for m in managers if m.key != key]
    wanted = frozenset(flatten(struct, config))

    merged: Obj = _merge(struct, live, config)
    if mine is not None:
        _prune(struct, merged, mine.paths - wanted, [wanted, *(m.paths for m in others)])
    change = compare(struct, before, merged)
    conflicts = [(m, path) for m in others for path in sorted(m.paths & change.set)]
    if conflicts and not applier.force:
        raise _conflict(conflicts)

    kept = [m.without(change.removed | (m.paths & change.set)) for m in others]
    same = mine is not None and mine.paths == wanted and not (change.set or change.removed)
    time = mine.time if same and mine is not None else applier.now
    entry = Manager(applier.name, "Apply", applier.api_version, applier.subresource, time, wanted)
    write_managers(merged, [entry, *kept])
    return merged


def _merge(kind: Type, live: Json, config: Json) -> Json:
    if isinstance(kind, Scalar) or getattr(kind, "atomic", False):
        return config
    if isinstance(kind, ListOf):
        return _merge_list(kind, live, config) if kind.keys or kind.is_set else config
    if not isinstance(live, dict) or not isinstance(config, dict):
        return config
    for name, value in config.items():
        below = kind.value if isinstance(kind, MapOf) else kind.fields[name]
        live[name] = _merge(below, live[name], value) if name in live else value
    return live


def _merge_list(kind: ListOf, live: Json, config: list[Json]) -> list[Json]:
    """Live items keep their place; applied ones merge into them, new ones follow in their order."""
    if not isinstance(live, list):
        return config
    wanted = {element(kind, item): item for item in config}
    out = []
    for item in live:
        at = element(kind, item)
        out.append(_merge(kind.item, item, wanted.pop(at)) if at in wanted else item)
    return [*out, *wanted.values()]


def _prune(
    struct: Struct, merged: Obj, dropped: frozenset[Path], kept: list[frozenset[Path]]
) -> None:
    """Remove what the manager no longer applies, unless it or a part of it is still owned.

    Items go before their fields, as an item without its keys could no longer be found.
    """
    owned = {
        path[:length] for paths in kept for path in paths for length in range(1, len(path) + 1)
    }
    for path in sorted(dropped, key=len):
        if path not in owned and not is_key_of_item(path):
            remove(struct, merged, path)


def _conflict(conflicts: list[tuple[Manager, Path]]) -> StatusError:
    causes = [
        {
            "reason": "FieldManagerConflict",
            "message": f"conflict with {manager}",
            "field": readable(path),
        }
        for manager, path in conflicts
    ]
    return StatusError(409, "Conflict", _words(conflicts), {"causes": causes})


def _words(conflicts: list[tuple[Manager, Path]]) -> str:
    if len(conflicts) == 1:
        manager, path = conflicts[0]
        return f"Apply failed with 1 conflict: conflict with {manager}: {readable(path)}"
    by_manager: dict[str, list[str]] = {}
    for manager, path in conflicts:
        by_manager.setdefault(str(manager), []).append(readable(path))
    lines = []
    for name in sorted(by_manager):
        lines.append(f"conflicts with {name}:")
        lines.extend(f"- {path}" for path in by_manager[name])
    return f"Apply failed with {len(conflicts)} conflicts: " + "\n".join(lines)
