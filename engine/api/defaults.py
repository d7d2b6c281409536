"""Merging defaults: the engine's, then each folder's from the outside in, then the job's own."""

from collections.abc import Iterable, Mapping
from typing import Any

BUILT_IN: Mapping[str, Any] = {
    "timeout": "1h",
    "startTimeout": "10m",
    "ttlLeeway": "5m",
    "template": "job",
    "onChange": "Replace",
}

_ENTRY_POINT = ("script", "command", "args")


def merge_specs(layers: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """One spec out of `layers`, later ones winning.

    Mappings merge key by key, everything else is replaced whole. Script, command and args go
    together: a layer that sets one of them drops all three of the layers before it.
    """
    merged: dict[str, Any] = {}
    for layer in layers:
        if any(name in layer for name in _ENTRY_POINT):
            merged = {key: value for key, value in merged.items() if key not in _ENTRY_POINT}
        merged = merge_mappings(merged, layer)
    return merged


def merge_mappings(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """`below` with `above` on top; a secret's source is one value, never a mix of two."""
    merged = dict(below)
    for key, value in above.items():
        before = merged.get(key)
        mixes = isinstance(before, Mapping) and isinstance(value, Mapping) and not _is_source(value)
        merged[key] = merge_mappings(before, value) if mixes else value  # type: ignore[arg-type]
    return merged


def _is_source(value: Mapping[str, Any]) -> bool:
    return len(value) == 1 and next(iter(value)) in ("value", "fromEnv", "fromFile")
