"""A Pod's status as the kubelet reports it, from what its worker knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.sandbox.clock import rfc3339

if TYPE_CHECKING:
    from engine.sandbox.node.worker import Worker
    from engine.sandbox.values import Obj

_SET_UP = "PodReadyToStartContainers"


def pod_status(worker: Worker) -> Obj:
    """The whole status; conditions that haven't changed keep their transition times."""
    old = worker.pod.obj.get("status", {})
    generation = worker.pod.obj["metadata"].get("generation", 1)
    now = rfc3339(worker.clock.now())
    out: Obj = {
        "observedGeneration": generation,
        "phase": worker.phase,
        "conditions": _conditions(worker, old.get("conditions", []), now, generation),
        "hostIP": worker.host.address,
        "hostIPs": [{"ip": worker.host.address}],
        "startTime": rfc3339(worker.started_at),
        "qosClass": old.get("qosClass", "BestEffort"),
    }
    if worker.reason:
        out.update(reason=worker.reason, message=worker.message)
    if "podIP" in old or _was_set_up(old) or any(container.started for container in worker.all):
        address = pod_address(worker.pod.uid)
        out.update(podIP=address, podIPs=[{"ip": address}])
    if worker.init:
        out["initContainerStatuses"] = [container.status() for container in worker.init]
    out["containerStatuses"] = [container.status() for container in worker.main]
    return out


def _was_set_up(status: Obj) -> bool:
    """The address is told with the write after the one that says so."""
    conditions = status.get("conditions", ())
    return any(c["type"] == _SET_UP and c["status"] == "True" for c in conditions)


def pod_address(uid: str) -> str:
    number = int(uid.replace("-", "")[:4], 16)
    return f"10.244.{number >> 8}.{number & 255}"


def _conditions(worker: Worker, old: list[Obj], now: str, generation: int) -> list[Obj]:
    initialized = all(c.succeeded or (c.is_sidecar and c.started) for c in worker.init)
    serving = [container for container in worker.all if container.is_sidecar or not container.init]
    names = [container.name for container in serving if container.phase != "running"]
    wanted = [(_SET_UP, worker.is_set_up, "", "")]
    phase = worker.apparent_phase
    if phase in ("Succeeded", "Failed"):
        done = "PodCompleted" if phase == "Succeeded" else "PodFailed"
        wanted += [
            (
                "Initialized",
                initialized,
                done if initialized and done == "PodCompleted" else "",
                "",
            ),
            ("Ready", False, done, ""),
            ("ContainersReady", False, done, ""),
        ]
    else:
        unready = f"containers with unready status: [{' '.join(names)}]" if names else ""
        why = "ContainersNotReady" if names else ""
        waiting = [c.name for c in worker.init if not (c.succeeded or (c.is_sidecar and c.started))]
        words = "" if initialized else f"containers with incomplete status: [{' '.join(waiting)}]"
        wanted += [
            ("Initialized", initialized, "" if initialized else "ContainersNotInitialized", words),
            ("Ready", not names, why, unready),
            ("ContainersReady", not names, why, unready),
        ]
    wanted.append(("PodScheduled", True, "", ""))
    if worker.disruption:
        wanted.append(("DisruptionTarget", True, worker.disruption, worker.message))
    mine = {name for name, *_ in wanted}
    kept = [condition for condition in old if condition["type"] not in mine]
    made = [_condition(old, now, *one) for one in wanted]
    return [{**condition, "observedGeneration": generation} for condition in made] + kept


def _condition(old: list[Obj], now: str, name: str, holds: bool, reason: str, message: str) -> Obj:
    status = "True" if holds else "False"
    before = next((c for c in old if c["type"] == name), {})
    changed = before.get("lastTransitionTime") or now
    out: Obj = {
        "type": name,
        "status": status,
        "lastProbeTime": None,
        "lastTransitionTime": changed if before.get("status") == status else now,
    }
    if reason:
        out["reason"] = reason
    if message:
        out["message"] = message
    return out
