"""Have the kubelet keep the last lines of each container that fails in the pod's status."""

from typing import Any

from engine.transform.context import TransformContext, with_containers

_POLICY = "terminationMessagePolicy"


def set_last_words(manifest: dict[str, Any], context: TransformContext) -> dict[str, Any]:
    """Nothing when the feature is off, or where a container has a policy of its own."""
    if not context.job.features.last_words or manifest["kind"] != "Pod":
        return manifest
    policy = {_POLICY: "FallbackToLogsOnError"}
    return with_containers(manifest, lambda one: one if one.get(_POLICY) else {**one, **policy})
