"""Make the pod the owner of its Secret and ConfigMap, so that they never outlive it."""

from typing import Any

from engine.transform.context import with_field


def set_owner_reference(manifest: dict[str, Any], *, pod: str, uid: str) -> dict[str, Any]:
    """Without `controller` and `blockOwnerDeletion`, which would need rights that nothing needs."""
    owner = {"apiVersion": "v1", "kind": "Pod", "name": pod, "uid": uid}
    return with_field(manifest, "metadata", "ownerReferences", value=[owner])
