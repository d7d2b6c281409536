"""Apply the spec's `podPatch`, a strategic merge patch, to the rendered pod."""

from typing import Any

from engine.api.schema import shape_fault
from engine.errors import RenderError
from engine.transform.check_metadata import metadata_error
from engine.transform.context import TransformContext
from engine.transform.manifest_edit import is_pod
from engine.transform.strategic_merge import strategic_merge


def apply_pod_patch(manifest: dict[str, Any], context: TransformContext) -> dict[str, Any]:
    """The pod with the patch on top. Errors: RenderError when it does not fit, or leaves no pod."""
    patch = context.job.spec.get("podPatch")
    if not patch or not is_pod(manifest):
        return manifest
    try:
        patched = strategic_merge(
            context.kubernetes, context.kubernetes.kind("v1", "Pod"), manifest, patch
        )
    except RenderError as error:
        raise RenderError(f"spec.podPatch: {error.cause}", where=context.job.place) from None
    _check(patched, context)
    return patched


def _check(pod: dict[str, Any], context: TransformContext) -> None:
    place = context.job.place
    if (pod.get("apiVersion"), pod.get("kind")) != ("v1", "Pod") or not pod.get("spec"):
        raise RenderError("spec.podPatch leaves no pod", where=place)
    fault = shape_fault(pod, context.kubernetes) or metadata_error(pod)
    if fault:
        raise RenderError(f"spec.podPatch makes a pod in which {fault}", where=place)
