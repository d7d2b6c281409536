"""A Pod's row in a table: ready containers, and the most telling reason there is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.sandbox.verbs.ages import age

if TYPE_CHECKING:
    from engine.sandbox.values import Json, Obj


_ENDED = ("Succeeded", "Failed")
_WHOLE_POD = ("Evicted", "DeadlineExceeded")


def pod_cells(pod: Obj, now: float) -> list[Json]:
    spec, status = pod["spec"], pod.get("status", {})
    mains = status.get("containerStatuses", [])
    sidecars = _sidecars(pod)
    started = [s for s in status.get("initContainerStatuses", ()) if s["name"] in sidecars]
    ready = sum(bool(s.get("ready")) for s in (*mains, *started))
    total = len(spec["containers"]) + len(sidecars)
    restarts = sum(int(s.get("restartCount", 0)) for s in mains)
    gates = ",".join(gate["name"] for gate in spec.get("readinessGates", ())) or "<none>"
    return [
        pod["metadata"]["name"],
        f"{ready}/{total}",
        pod_state(pod),
        str(restarts),
        age(pod, now),
        status.get("podIP") or "<none>",
        spec.get("nodeName") or "<none>",
        status.get("nominatedNodeName") or "<none>",
        gates,
    ]


def pod_state(pod: Obj) -> str:
    """The STATUS column: the most telling reason there is."""
    status = pod.get("status", {})
    phase = status.get("phase", "")
    reason: str = status.get("reason", "")
    if pod["metadata"].get("deletionTimestamp") and phase not in _ENDED:
        return "Unknown" if reason == "NodeLost" else "Terminating"
    if reason in _WHOLE_POD:
        return reason
    return _init_state(pod) or _main_state(status) or _gated(status) or reason or phase


def _gated(status: Obj) -> str:
    gated = any(c.get("reason") == "SchedulingGated" for c in status.get("conditions", ()))
    return "SchedulingGated" if gated else ""


def _sidecars(pod: Obj) -> list[str]:
    return [c["name"] for c in pod["spec"].get("initContainers", ()) if "restartPolicy" in c]


def _init_state(pod: Obj) -> str:
    """Of the first init container that isn't through; empty once all are."""
    sidecars = _sidecars(pod)
    entries = pod.get("status", {}).get("initContainerStatuses", ())
    for at, entry in enumerate(entries):
        ended = entry["state"].get("terminated")
        if ended and ended["exitCode"]:
            return f"Init:{ended.get('reason') or _exit(ended)}"
        if ended or (entry["name"] in sidecars and entry.get("started")):
            continue
        reason = entry["state"].get("waiting", {}).get("reason", "PodInitializing")
        return f"Init:{at}/{len(entries)}" if reason == "PodInitializing" else f"Init:{reason}"
    return ""


def _main_state(status: Obj) -> str:
    for entry in status.get("containerStatuses", ()):
        if reason := entry["state"].get("waiting", {}).get("reason"):
            return str(reason)
        if ended := entry["state"].get("terminated"):
            return ended.get("reason") or _exit(ended)
    return ""


def _exit(ended: Obj) -> str:
    return f"ExitCode:{ended['exitCode']}"
