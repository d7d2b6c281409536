"""Keep a pod that sets no grace period of its own within the operator's limit."""

from typing import Any

from engine.transform.context import TransformContext, with_field
from engine.wellknown import GRACE_PERIOD


def set_grace_period(manifest: dict[str, Any], context: TransformContext) -> dict[str, Any]:
    """The limit, where it is below what the cluster would fill in."""
    most = context.limits.max_grace_period
    if most is None or most >= GRACE_PERIOD or manifest["kind"] != "Pod":
        return manifest
    if manifest["spec"].get("terminationGracePeriodSeconds") is not None:
        return manifest
    return with_field(manifest, "spec", "terminationGracePeriodSeconds", value=int(most))
