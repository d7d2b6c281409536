"""Hold the pod back until what it needs exists and its run is recorded."""

from typing import Any

from engine.refs import GATE
from engine.transform.context import TransformContext, with_field


def set_scheduling_gate(manifest: dict[str, Any], context: TransformContext) -> dict[str, Any]:
    """The engine's gate, behind those of others."""
    del context
    if manifest["kind"] != "Pod":
        return manifest
    gates = manifest["spec"].get("schedulingGates") or []
    others = [gate for gate in gates if gate.get("name") != GATE]
    return with_field(manifest, "spec", "schedulingGates", value=[*others, {"name": GATE}])
