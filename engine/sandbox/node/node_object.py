"""A Node object, and what happens to pods when their node is lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.sandbox import kinds
from engine.sandbox.clock import rfc3339

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.sandbox.context import Context
    from engine.sandbox.store import Entry
    from engine.sandbox.values import Obj

NODE_NAME = "sandbox-node"
"""Name of the first node."""
_CAPACITY = {"cpu": "1k", "memory": "4Ti", "ephemeral-storage": "4Ti", "pods": "100000"}
_IMAGE_SIZE, _MOST_IMAGES = 1, 50
_UNREACHABLE = "node.kubernetes.io/unreachable"


def node_object(context: Context, name: str, address: str) -> Obj:
    """A node that says what it is: nothing runs on it."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "uid": context.new_uid(),
            "creationTimestamp": context.clock.stamp(),
            "labels": {
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
            },
            "annotations": {"sandbox.engine/about": "simulated: no container is ever run here"},
        },
        "spec": {},
        "status": {
            "capacity": dict(_CAPACITY),
            "allocatable": dict(_CAPACITY),
            "conditions": [_ready(context, "True", "KubeletReady", "the simulated node is ready")],
            "addresses": [
                {"type": "InternalIP", "address": address},
                {"type": "Hostname", "address": name},
            ],
            "nodeInfo": {
                "kubeletVersion": f"v1.{context.minor}.0",
                "osImage": "engine sandbox (runs no container)",
                "containerRuntimeVersion": "simulated://0",
                "kernelVersion": "none",
                "operatingSystem": "linux",
                "architecture": "amd64",
            },
        },
    }


def set_ready(context: Context, node: Entry, ready: bool) -> None:
    """Mark the node reachable or not, with the taints that go with it."""
    status = {**node.obj["status"]}
    if ready:
        condition = _ready(context, "True", "KubeletReady", "the simulated node is ready")
        taints: list[Obj] = []
    else:
        words = "Kubelet stopped posting node status."
        condition = _ready(context, "Unknown", "NodeStatusUnknown", words)
        added = context.clock.stamp()
        taints = [
            {"key": _UNREACHABLE, "effect": effect, "timeAdded": added}
            for effect in ("NoSchedule", "NoExecute")
        ]
    status["conditions"] = [condition]
    others = [t for t in node.obj["spec"].get("taints", ()) if t["key"] != _UNREACHABLE]
    spec = {**node.obj["spec"], "taints": [*others, *taints]}
    if not spec["taints"]:
        del spec["taints"]
    meta = dict(node.obj["metadata"])
    context.storage.put(kinds.NODES, {**node.obj, "metadata": meta, "spec": spec, "status": status})


def set_images(context: Context, node: Entry, names: Sequence[str]) -> None:
    """Write the images into the status of the node, at most as many as a kubelet does."""
    listed = names[:_MOST_IMAGES]
    images = [{"names": [name], "sizeBytes": _IMAGE_SIZE} for name in listed]
    meta, status = dict(node.obj["metadata"]), {**node.obj["status"], "images": images}
    context.storage.put(kinds.NODES, {**node.obj, "metadata": meta, "status": status})


def outage_tolerated(pod: Entry) -> float | None:
    """Seconds that a Pod stays bound to an unreachable node; None for ever."""
    for toleration in pod.obj["spec"].get("tolerations", ()):
        if toleration.get("key", _UNREACHABLE) == _UNREACHABLE:
            seconds = toleration.get("tolerationSeconds")
            return None if seconds is None else float(seconds)
    return 0.0


def taint_evicted(context: Context, pod: Entry) -> Obj:
    """The Pod as the control plane marks it when its node stays away too long."""
    condition = {
        "type": "DisruptionTarget",
        "observedGeneration": pod.obj["metadata"].get("generation", 1),
        "status": "True",
        "reason": "DeletionByTaintManager",
        "message": "Taint manager: deleting due to NoExecute taint",
        "lastProbeTime": None,
        "lastTransitionTime": rfc3339(context.clock.now()),
    }
    status = dict(pod.obj["status"])
    status["conditions"] = [*status.get("conditions", ()), condition]
    return {**pod.obj, "metadata": dict(pod.obj["metadata"]), "status": status}


def _ready(context: Context, status: str, reason: str, message: str) -> Obj:
    now = context.clock.stamp()
    return {
        "type": "Ready",
        "status": status,
        "reason": reason,
        "message": message,
        "lastHeartbeatTime": now,
        "lastTransitionTime": now,
    }
