"""What a spec says of the node it wants, and of one that is lost."""

from typing import Any


def leaves_lost_nodes(*, after: int) -> dict[str, Any]:
    """A spec whose pod is tied to an unreachable node for so many seconds, rather than for 300."""
    unreachable = {"key": "node.kubernetes.io/unreachable", "operator": "Exists"}
    return {"tolerations": [{**unreachable, "effect": "NoExecute", "tolerationSeconds": after}]}


def prefers_node(name: str) -> dict[str, Any]:
    """A spec whose pod goes to this node as long as that takes one."""
    hosts = {"key": "kubernetes.io/hostname", "operator": "In", "values": [name]}
    preferred = [{"weight": 100, "preference": {"matchExpressions": [hosts]}}]
    term = {"preferredDuringSchedulingIgnoredDuringExecution": preferred}
    return {"podPatch": {"spec": {"affinity": {"nodeAffinity": term}}}}
