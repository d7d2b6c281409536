"""A Pod's row in a table, as the server's printer for pods computes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.sandbox.clock import parse_rfc3339
from engine.sandbox.verbs.ages import age, duration

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.sandbox.values import Json, Obj


_ENDED = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class _Summary:
    """What the containers' statuses come down to."""

    ready: int
    state: str
    counted: list[Obj]
    """The statuses whose restarts are told."""


def pod_cells(pod: Obj, now: float) -> list[Json]:
    """A Pod's cells, as `kubectl get pods -o wide` shows them."""
    spec, status = pod["spec"], pod.get("status", {})
    told = _summary(pod)
    total = len(spec["containers"]) + len(_sidecars(pod))
    return [
        pod["metadata"]["name"],
        f"{told.ready}/{total}",
        _deleting(pod) or told.state,
        _restarts(told.counted, now),
        age(pod, now),
        status.get("podIP") or "<none>",
        spec.get("nodeName") or "<none>",
        status.get("nominatedNodeName") or "<none>",
        _readiness_gates(spec, status),
    ]


def _summary(pod: Obj) -> _Summary:
    status = pod.get("status", {})
    sidecars = _sidecars(pod)
    begun: list[Obj] = []
    ready, state = 0, _of_the_whole(status)
    for at, entry in enumerate(status.get("initContainerStatuses", ())):
        begun.append(entry)
        ended = entry["state"].get("terminated")
        if ended and not ended["exitCode"]:
            continue
        if entry["name"] in sidecars and entry.get("started"):
            ready += bool(entry.get("ready"))
            continue
        state = _initializing(entry, at, len(pod["spec"]["initContainers"]))
        if not _holds(status, "Initialized"):
            return _Summary(ready, state, begun)
        break
    mains = status.get("containerStatuses", [])
    counted = [*(entry for entry in begun if entry["name"] in sidecars), *mains]
    serving = sum(bool(s.get("ready") and s["state"].get("running")) for s in mains)
    return _Summary(ready + serving, _main_state(status, mains, state, serving), counted)


def _of_the_whole(status: Obj) -> str:
    if any(c.get("reason") == "SchedulingGated" for c in status.get("conditions", ())):
        return "SchedulingGated"
    return str(status.get("reason") or status.get("phase", ""))


def _initializing(entry: Obj, at: int, count: int) -> str:
    if ended := entry["state"].get("terminated"):
        return f"Init:{_ended(ended)}"
    reason = entry["state"].get("waiting", {}).get("reason", "PodInitializing")
    return f"Init:{at}/{count}" if reason == "PodInitializing" else f"Init:{reason}"


def _main_state(status: Obj, mains: list[Obj], state: str, serving: int) -> str:
    """The first container's reason; behind a completed one, whatever else there is to tell."""
    failure = ""
    for entry in reversed(mains):
        if reason := entry["state"].get("waiting", {}).get("reason"):
            state = reason
        elif ended := entry["state"].get("terminated"):
            state = _ended(ended)
            failure = state if ended["exitCode"] else failure
    if state != "Completed":
        return state
    if serving and _holds(status, "Ready"):
        return "Running"
    return failure or ("NotReady" if serving else state)


def _ended(ended: Obj) -> str:
    return ended.get("reason") or f"ExitCode:{ended['exitCode']}"


def _deleting(pod: Obj) -> str:
    status = pod.get("status", {})
    if not pod["metadata"].get("deletionTimestamp"):
        return ""
    if status.get("reason") == "NodeLost":
        return "Unknown"
    return "" if status.get("phase") in _ENDED else "Terminating"


def _restarts(statuses: Iterable[Obj], now: float) -> str:
    """How often, and how long ago the last one that failed had ended."""
    count, last = 0, ""
    for status in statuses:
        count += int(status.get("restartCount", 0))
        ended = status.get("lastState", {}).get("terminated", {}).get("finishedAt") or ""
        last = max(last, ended)
    if not count or not last:
        return str(count)
    return f"{count} ({duration(now - parse_rfc3339(last))} ago)"


def _readiness_gates(spec: Obj, status: Obj) -> str:
    gates = spec.get("readinessGates", ())
    met = sum(_holds(status, gate.get("conditionType", "")) for gate in gates)
    return f"{met}/{len(gates)}" if gates else "<none>"


def _holds(status: Obj, condition: str) -> bool:
    conditions = status.get("conditions", ())
    return any(c["type"] == condition and c["status"] == "True" for c in conditions)


def _sidecars(pod: Obj) -> list[str]:
    return [c["name"] for c in pod["spec"].get("initContainers", ()) if "restartPolicy" in c]
