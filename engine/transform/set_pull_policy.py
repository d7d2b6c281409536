"""Give each container the pull policy of this attempt; without one, the cluster decides.

Where the operator allows some policies only, the cluster isn't left to choose another one. The next
attempt is a new pod: a policy can't be changed on a live one, and the kubelet's back-off is by UID.
"""

from typing import Any

from engine.transform.context import TransformContext, with_containers, with_field
from engine.wellknown import allowed_pull_policy


def set_pull_policy(manifest: dict[str, Any], context: TransformContext) -> dict[str, Any]:
    """Each container's pull policy of this attempt, or else one that is allowed.

    Volumes that are images have policies as well, but no attempts.
    """
    allowed = context.limits.allowed_pull_policies
    if not (context.policies or allowed) or manifest["kind"] != "Pod":
        return manifest

    def change(container: dict[str, Any]) -> dict[str, Any]:
        policy = context.policies.get(container["name"]) or container.get("imagePullPolicy")
        if not policy and allowed:
            policy = allowed_pull_policy(container.get("image", ""), allowed)
        return {**container, "imagePullPolicy": policy} if policy else container

    changed = with_containers(manifest, change)
    volumes = changed["spec"].get("volumes")
    if not volumes or not allowed:
        return changed
    return with_field(changed, "spec", "volumes", value=[_pulled(v, allowed) for v in volumes])


def _pulled(volume: dict[str, Any], allowed: tuple[str, ...]) -> dict[str, Any]:
    image = volume.get("image")
    if image is None or image.get("pullPolicy"):
        return volume
    policy = allowed_pull_policy(image.get("reference") or "", allowed)
    return {**volume, "image": {**image, "pullPolicy": policy}}
