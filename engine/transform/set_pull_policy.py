"""Give each container the pull policy of this attempt; without one, the cluster decides."""

from typing import Any

from engine.transform.context import TransformContext
from engine.transform.manifest_edit import is_pod, with_containers


def set_pull_policy(manifest: dict[str, Any], context: TransformContext) -> dict[str, Any]:
    """Each container's pull policy of this attempt."""
    if not context.policies or not is_pod(manifest):
        return manifest

    def change(container: dict[str, Any]) -> dict[str, Any]:
        policy = context.policies.get(container["name"])
        return {**container, "imagePullPolicy": policy} if policy else container

    return with_containers(manifest, change)
