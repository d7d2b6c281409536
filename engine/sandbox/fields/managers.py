"""managedFields: read, kept up to date by plain writes, and written back."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from engine.sandbox.fields.paths import Path, flatten, from_fields_v1, to_fields_v1

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.kubeschema.model import Struct
    from engine.sandbox.values import Obj

_NOTHING = object()


@dataclass(frozen=True, slots=True)
class Manager:
    """One entry of managedFields."""

    name: str
    operation: str
    api_version: str
    subresource: str
    time: str
    paths: frozenset[Path]

    @property
    def key(self) -> tuple[str, str, str]:
        """What tells its entry from others."""
        return (self.name, self.operation, self.subresource)

    def without(self, paths: Iterable[Path]) -> Manager:
        """The same manager, which owns these fields no more."""
        return replace(self, paths=self.paths.difference(paths))

    def __str__(self) -> str:
        """As a conflict names it."""
        text = f'"{self.name}"'
        if self.subresource:
            text += f' with subresource "{self.subresource}"'
        if self.operation == "Update":
            text += f" using {self.api_version}"
            if self.time:
                text += f" at {self.time}"
        return text


def read_managers(obj: Obj) -> list[Manager]:
    """The entries of `metadata.managedFields`."""
    return [
        Manager(
            entry.get("manager", ""),
            entry.get("operation", ""),
            entry.get("apiVersion", ""),
            entry.get("subresource", ""),
            entry.get("time", ""),
            frozenset(from_fields_v1(entry.get("fieldsV1") or {})),
        )
        for entry in obj["metadata"].get("managedFields", ())
    ]


def write_managers(obj: Obj, managers: Iterable[Manager]) -> None:
    """Set `metadata.managedFields`; who owns nothing has no entry."""
    entries = []
    for manager in managers:
        if manager.paths:
            entry = {
                "manager": manager.name,
                "operation": manager.operation,
                "apiVersion": manager.api_version,
                "time": manager.time,
                "fieldsType": "FieldsV1",
                "fieldsV1": to_fields_v1(manager.paths),
            }
            if manager.subresource:
                entry["subresource"] = manager.subresource
            entries.append(entry)
    if entries:
        obj["metadata"]["managedFields"] = entries
    else:
        obj["metadata"].pop("managedFields", None)


@dataclass(frozen=True, slots=True)
class Difference:
    """Paths that a write set (new or changed) and paths that it took away."""

    set: frozenset[Path]
    removed: frozenset[Path]


def compare(struct: Struct, old: Obj, new: Obj) -> Difference:
    """Which fields a write set or changed, and which it took out."""
    before = flatten(struct, old, with_parents=True)
    after = flatten(struct, new, with_parents=True)
    return Difference(
        frozenset(p for p, value in after.items() if before.get(p, _NOTHING) != value),
        frozenset(before.keys() - after.keys()),
    )


def track_update(
    struct: Struct, old: Obj | None, new: Obj, name: str, api_version: str, sub: str, now: str
) -> None:
    """Note in managedFields that ``name`` wrote what differs between ``old`` and ``new``."""
    if old is None:
        made = Manager(
            name,
            "Update",
            api_version,
            sub,
            now,
            frozenset(flatten(struct, new, with_parents=True)),
        )
        write_managers(new, [made])
        return
    change = compare(struct, old, new)
    managers = read_managers(old)
    if not change.set and not change.removed:
        write_managers(new, managers)
        return
    key = (name, "Update", sub)
    mine = next((m for m in managers if m.key == key), None)
    others = [m.without(change.set | change.removed) for m in managers if m.key != key]
    owned = ((mine.paths if mine else frozenset()) | change.set) - change.removed
    others.append(Manager(name, "Update", api_version, sub, now, owned))
    write_managers(new, others)
