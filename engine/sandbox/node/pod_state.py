"""What the node knows of one Pod, and the status that the kubelet makes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.sandbox.clock import rfc3339
from engine.sandbox.node.containers import CREATING, INITIALIZING, Container, linux_user

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.sandbox.clock import Clock
    from engine.sandbox.node.node import Node
    from engine.sandbox.store import Entry
    from engine.sandbox.values import Obj

_SET_UP = "PodReadyToStartContainers"
_ENDED = ("Succeeded", "Failed")


class PodState:
    """One Pod on its node: its containers, its phase, and the status that the server gets."""

    def __init__(self, node: Node, pod: Entry) -> None:
        self.node = node
        self.pod = pod
        self.phase = "Pending"
        self.reason = ""
        self.message = ""
        self.disruption = ""
        """The reason of its DisruptionTarget condition, if it was evicted."""
        self.is_set_up = False
        self.closed = False
        """The Pod is gone; nothing more is to happen."""
        self.started_at = self.clock.now()
        spec = pod.obj["spec"]
        self.init = [self._container(c, init=True) for c in spec.get("initContainers", ())]
        self.main = [self._container(c, init=False) for c in spec["containers"]]

    def _container(self, spec: Obj, *, init: bool) -> Container:
        sidecar = init and spec.get("restartPolicy") == "Always"
        run = self.node.run_of(self.pod, spec, sidecar=sidecar)
        whole = self.pod.obj["spec"]
        waits = INITIALIZING if whole.get("initContainers") else CREATING
        user = linux_user(whole.get("securityContext", {}), spec.get("securityContext", {}))
        return Container(spec, init, run, reason=waits, user=user)

    @property
    def clock(self) -> Clock:
        """The sandbox's."""
        return self.node.context.clock

    @property
    def all(self) -> list[Container]:
        """Init containers and sidecars, then the main ones."""
        return [*self.init, *self.main]

    @property
    def ended(self) -> bool:
        """Whether its phase is a last one."""
        return self.phase in _ENDED

    @property
    def is_doomed(self) -> bool:
        """Whether it has a deletion timestamp."""
        return bool(self.pod.obj["metadata"].get("deletionTimestamp"))

    @property
    def is_initialized(self) -> bool:
        """Whether the main containers may have their turn."""
        return all(c.succeeded or (c.is_sidecar and c.started) for c in self.init)

    @property
    def apparent_phase(self) -> str:
        """What the conditions are about: the phase is held back until all have stopped."""
        if self.ended or not all(container.over for container in self.main):
            return self.phase
        if any(container.phase == "running" for container in self.init):
            return self.phase
        return "Failed" if any(container.exit_code for container in self.main) else "Succeeded"

    def publish(self) -> None:
        """Write its status to the server."""
        if not self.closed:
            self.node.publish(self.pod, pod_status(self))

    def later(self, container: Container | None, delay: float, action: Callable[[], None]) -> None:
        """Do something after `delay` seconds, unless the Pod is gone or at its end by then."""
        timer = self.clock.call_later(
            delay, lambda: None if self.closed or self.ended else action()
        )
        if container is not None:
            container.timer = timer

    def record_event(
        self, kind: str, reason: str, message: str, container: Container | None = None
    ) -> None:
        """An Event about it, or about one of its containers."""
        path = container.field_path if container else ""
        self.node.recorder.record(self.pod, kind, reason, message, path)


def pod_status(state: PodState) -> Obj:
    """The whole status; conditions that haven't changed keep their transition times."""
    old = state.pod.obj.get("status", {})
    generation = state.pod.obj["metadata"].get("generation", 1)
    now = rfc3339(state.clock.now())
    out: Obj = {
        "observedGeneration": generation,
        "phase": state.phase,
        "conditions": _conditions(state, old.get("conditions", []), now, generation),
        "hostIP": state.node.address,
        "hostIPs": [{"ip": state.node.address}],
        "startTime": rfc3339(state.started_at),
        "qosClass": old.get("qosClass", "BestEffort"),
    }
    if state.reason:
        out.update(reason=state.reason, message=state.message)
    if "podIP" in old or _was_set_up(old) or any(container.started for container in state.all):
        address = pod_address(state.pod.uid)
        out.update(podIP=address, podIPs=[{"ip": address}])
    if state.init:
        out["initContainerStatuses"] = [container.status() for container in state.init]
    out["containerStatuses"] = [container.status() for container in state.main]
    return out


def _was_set_up(status: Obj) -> bool:
    """Whether the last write said so: the next one has the address."""
    conditions = status.get("conditions", ())
    return any(c["type"] == _SET_UP and c["status"] == "True" for c in conditions)


def pod_address(uid: str) -> str:
    """Its address, made of its UID."""
    number = int(uid.replace("-", "")[:4], 16)
    return f"10.244.{number >> 8}.{number & 255}"


def _conditions(state: PodState, old: list[Obj], now: str, generation: int) -> list[Obj]:
    initialized = state.is_initialized
    serving = [container for container in state.all if container.is_sidecar or not container.init]
    names = [container.name for container in serving if container.phase != "running"]
    wanted = [(_SET_UP, state.is_set_up, "", "")]
    phase = state.apparent_phase
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
        waiting = [c.name for c in state.init if not (c.succeeded or (c.is_sidecar and c.started))]
        words = "" if initialized else f"containers with incomplete status: [{' '.join(waiting)}]"
        wanted += [
            ("Initialized", initialized, "" if initialized else "ContainersNotInitialized", words),
            ("Ready", not names, why, unready),
            ("ContainersReady", not names, why, unready),
        ]
    wanted.append(("PodScheduled", True, "", ""))
    if state.disruption:
        wanted.append(("DisruptionTarget", True, state.disruption, state.message))
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
