"""Apply the spec's `podPatch`, a strategic merge patch, to the rendered pod."""

from typing import Any

from engine.api.schema import check_manifest
from engine.errors import RenderError
from engine.transform.context import TransformContext, metadata_error
from engine.transform.strategic_merge import strategic_merge


def apply_pod_patch(manifest: dict[str, Any], context: TransformContext) -> dict[str, Any]:
    """The pod with the patch on top. Errors: RenderError when it does not fit, or leaves no pod."""
    patch = context.job.spec.get("podPatch")
    if not patch or manifest["kind"] != "Pod":
        return manifest
    try:
        patched = strategic_merge(
            context.kubernetes, context.kubernetes.kind("v1", "Pod"), manifest, patch
        )
    except RenderError as error:
        raise RenderError(f"spec.podPatch: {error.cause}", where=context.job.place) from None
    if (patched.get("apiVersion"), patched.get("kind")) != ("v1", "Pod") or not patched.get("spec"):
        raise RenderError("spec.podPatch leaves no pod", where=context.job.place)
    faults = check_manifest(patched, context.kubernetes, lambda _path: context.job.place)
    fault = next((one.message for one in faults), "") or metadata_error(patched)
    if fault:
        raise RenderError(f"spec.podPatch makes a pod in which {fault}", where=context.job.place)
    return patched
