"""Make the JobSpec object the controller of its pod: the garbage collector ends the job with it."""

from typing import Any

from engine.api.versions import API_VERSION, JOB_SPEC
from engine.transform.context import TransformContext, with_field


def set_controller(manifest: dict[str, Any], context: TransformContext) -> dict[str, Any]:
    """Only a pod, of a spec that is an object; what the pod owns goes with the pod.

    To block the owner's deletion would need a right, and make it wait.
    """
    job = context.job
    if manifest["kind"] != "Pod" or job.object is None:
        return manifest
    owner = {"apiVersion": API_VERSION, "kind": JOB_SPEC, "name": job.name, "uid": job.object.uid}
    controls = {"controller": True, "blockOwnerDeletion": False}
    return with_field(manifest, "metadata", "ownerReferences", value=[{**owner, **controls}])
