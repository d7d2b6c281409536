"""Whether an object is there, by the rules of kstatus, which Flux, kpt and `helm --wait` follow.

The source is sigs.k8s.io/cli-utils, pkg/kstatus/status: `checkGenericProperties` of generic.go, for
kinds that it has no rules of its own for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class Expected(NamedTuple):
    """What a state of a job looks like to other tools."""

    conditions: Mapping[str, str]
    """Statuses by type; a type that isn't here is absent."""
    kstatus: str
    argocd: str
    """The health that Argo CD shows, by deploy/argocd/health.lua."""


_UNDER_WAY = {"Ready": "False", "Reconciling": "True", "Finished": "False"}
_FAILED = {"Ready": "False", "Stalled": "True", "Finished": "True", "Failed": "True"}
STATES: Mapping[str, Expected] = {
    "Queued": Expected(_UNDER_WAY, "InProgress", "Progressing"),
    "Starting": Expected(_UNDER_WAY, "InProgress", "Progressing"),
    "Running": Expected(_UNDER_WAY, "InProgress", "Progressing"),
    "Succeeded": Expected(
        {"Ready": "True", "Finished": "True", "Complete": "True"}, "Current", "Healthy"
    ),
    "Failed": Expected(_FAILED, "Failed", "Degraded"),
    "Cancelled": Expected(_FAILED, "Failed", "Degraded"),
    "InvalidSpec": Expected(_FAILED, "Failed", "Degraded"),
    "Suspended": Expected(
        {"Ready": "True", "Finished": "False", "Suspended": "True"}, "Current", "Suspended"
    ),
}
"""Every state of a JobSpec object. An edit that is yet to be seen makes each InProgress."""


def kstatus(obj: Mapping[str, Any]) -> str:
    """InProgress, Failed, Current or Terminating."""
    if obj["metadata"].get("deletionTimestamp"):
        return "Terminating"
    status = obj.get("status") or {}
    observed = status.get("observedGeneration")
    if observed is not None and observed != obj["metadata"]["generation"]:
        return "InProgress"
    conditions = status.get("conditions", ())
    for condition in conditions:  # the first of the two that is true
        if (condition["type"], condition["status"]) == ("Reconciling", "True"):
            return "InProgress"
        if (condition["type"], condition["status"]) == ("Stalled", "True"):
            return "Failed"
    for condition in conditions:
        if condition["type"] == "Ready":
            return "Current" if condition["status"] == "True" else "InProgress"
    return "Current"
