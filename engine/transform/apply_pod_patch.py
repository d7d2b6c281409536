"""Apply the spec's `podPatch`, a strategic merge patch, to the rendered pod."""

from collections import Counter
from typing import Any

from engine.errors import PatchError
from engine.kubeschema.strategic_merge import strategic_merge
from engine.podsecurity.pod import containers
from engine.refs import MAIN_CONTAINER
from engine.transform.check_metadata import metadata_error
from engine.transform.check_shape import shape_error
from engine.transform.context import TransformContext
from engine.transform.manifest_edit import is_pod


def apply_pod_patch(manifest: dict[str, Any], context: TransformContext) -> dict[str, Any]:
    """The pod with the patch on top.

    Errors: PatchError when the patch does not fit, or leaves a pod that is no run-to-completion
    job any more: without its main container, with two of a name, or restarted when it ends.
    """
    patch = context.job.spec.get("podPatch")
    if not patch or not is_pod(manifest):
        return manifest
    try:
        patched = strategic_merge(context.kubernetes().kind("v1", "Pod"), manifest, patch)
    except PatchError as error:
        raise PatchError(f"spec.podPatch: {error.cause}", where=context.job.place) from None
    _check(patched, context)
    return patched


def _check(pod: dict[str, Any], context: TransformContext) -> None:
    place = context.job.place
    if (pod.get("apiVersion"), pod.get("kind")) != ("v1", "Pod") or not pod.get("spec"):
        raise PatchError("spec.podPatch leaves no pod", where=place)
    fault = shape_error(pod) or metadata_error(pod)
    if fault:
        raise PatchError(f"spec.podPatch makes a pod in which {fault}", where=place)
    spec = pod["spec"]
    if not any(container["name"] == MAIN_CONTAINER for container in spec.get("containers") or ()):
        raise PatchError(f"spec.podPatch removes the container {MAIN_CONTAINER}", where=place)
    name, count = Counter(container["name"] for _, container in containers(pod)).most_common(1)[0]
    if count > 1:
        raise PatchError(f"spec.podPatch makes a pod with two containers {name}", where=place)
    policy = spec.get("restartPolicy")
    if policy is None:
        hint = "a job runs to completion: restartPolicy has to be Never"
        raise PatchError("spec.podPatch leaves no restartPolicy", where=place, hint=hint)
    if policy != "Never":
        hint = "a job runs to completion: use spec.retry"
        raise PatchError(f"spec.podPatch sets restartPolicy {policy}", where=place, hint=hint)
