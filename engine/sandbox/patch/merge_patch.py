"""JSON merge patch (RFC 7386): null removes, objects merge, everything else replaces."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.sandbox.values import Json


def merge_patch(doc: Json, patch: Json) -> Json:
    """The patched document. ``doc`` may be mutated."""
    if not isinstance(patch, dict):
        return patch
    if not isinstance(doc, dict):
        doc = {}
    for name, value in patch.items():
        if value is None:
            doc.pop(name, None)
        else:
            doc[name] = merge_patch(doc.get(name), value)
    return doc
