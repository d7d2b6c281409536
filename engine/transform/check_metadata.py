"""Refuse metadata that only the engine may set: pruning, holds and ownership rely on it."""

from typing import Any

from engine.transform.context import TransformContext
from engine.wellknown import reserved_metadata


def check_metadata(manifest: dict[str, Any], context: TransformContext) -> dict[str, Any]:
    """The manifest as it is. Errors: RenderError when its template set such metadata."""
    fault = metadata_error(manifest)
    if fault:
        raise context.template_error(manifest, fault)
    return manifest


def metadata_error(manifest: dict[str, Any]) -> str:
    """The reserved field that is set, as `metadata.finalizers is the engine's own`; else ""."""
    for path in reserved_metadata(manifest.get("metadata")):
        return f"{'.'.join(('metadata', *path))} is the engine's own"
    return ""
