"""Have the scheduler prefer nodes that have an image: others may not be able to get it."""

from collections.abc import Iterable, Sequence
from typing import Any

from engine.transform.context import with_field
from engine.wellknown import HOSTNAME

_WEIGHT = 100
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def prefer_nodes(pod: dict[str, Any], groups: Iterable[Sequence[str]]) -> dict[str, Any]:
    """`pod` with a preference for each group of hosts, beside what it asks for already.

    A host that is in two groups counts twice. Where none of them has room, another node will do.
    """
    terms = [
        {
            "weight": _WEIGHT,
            "preference": {
                "matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": [*hosts]}]
            },
        }
        for hosts in groups
        if hosts
    ]
    if not terms:
        return pod
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    preferred = [*(affinity.get(PREFERRED) or ()), *terms]
    return with_field(pod, "spec", "affinity", "nodeAffinity", PREFERRED, value=preferred)
