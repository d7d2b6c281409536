"""managedFields: who wrote an object last, and when. Which fields they own is left out."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.sandbox.values import Obj


def note_manager(
    old: Obj | None, new: Obj, name: str, api_version: str, subresource: str, now: str
) -> None:
    """Note in ``new`` that ``name`` wrote it, unless it is what it was."""
    entries = list(old["metadata"].get("managedFields", ())) if old else []
    new["metadata"].pop("managedFields", None)
    if old is None or _without_managers(old) != new:
        mine = {
            "manager": name,
            "operation": "Update",
            "apiVersion": api_version,
            "time": now,
            "fieldsType": "FieldsV1",
            "fieldsV1": {},
            **({"subresource": subresource} if subresource else {}),
        }
        key = (name, mine.get("subresource"))
        entries = [e for e in entries if (e["manager"], e.get("subresource")) != key] + [mine]
    if entries:
        new["metadata"]["managedFields"] = entries


def _without_managers(obj: Obj) -> Obj:
    meta = {key: value for key, value in obj["metadata"].items() if key != "managedFields"}
    return {**obj, "metadata": meta}
