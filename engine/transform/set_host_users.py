"""Give the pod users of its own: root in it is not root on the node."""

from typing import Any

from engine.api.pod_fields import CONTAINER_FIELDS
from engine.transform.context import TransformContext, with_field

_OF_THE_HOST = ("hostNetwork", "hostPID", "hostIPC")


def set_host_users(manifest: dict[str, Any], context: TransformContext) -> dict[str, Any]:
    """Only where the operator asks for it, and the pod for nothing that the API or a kubelet
    refuses beside it: namespaces of the host, block devices, NFS.
    """
    if not context.job.features.user_namespaces or manifest["kind"] != "Pod":
        return manifest
    spec = manifest["spec"]
    containers = (one for name in CONTAINER_FIELDS for one in spec.get(name) or ())
    forbids = (
        spec.get("hostUsers") is not None
        or any(spec.get(name) for name in _OF_THE_HOST)
        or any(one.get("volumeDevices") for one in containers)
        or any("nfs" in volume for volume in spec.get("volumes") or ())
    )
    return manifest if forbids else with_field(manifest, "spec", "hostUsers", value=False)
