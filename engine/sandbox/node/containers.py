"""One container of one Pod: where it is in its life, and how its status says so."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine.sandbox.clock import Timer, rfc3339

if TYPE_CHECKING:
    from engine.sandbox.scenario import Run
    from engine.sandbox.values import Obj

KILLED = 137
NEVER_STARTED = 128
CREATING, INITIALIZING = "ContainerCreating", "PodInitializing"
_LONGEST_BACK_OFF = 300.0
_UNKNOWN = "The container could not be located when the pod was terminated"


@dataclass(slots=True)
class Container:
    """Waiting, then running, then terminated; and perhaps waiting again."""

    spec: Obj
    init: bool
    run: Run
    phase: str = "new"
    reason: str = CREATING
    message: str = ""
    started: float = 0.0
    finished: float = 0.0
    exit_code: int = 0
    lost: bool = False
    returning: bool = False
    """It has ended and will be started again."""
    user: Obj = field(default_factory=dict)
    restarts: int = 0
    failures: int = 0
    image_id: str = ""
    container_id: str = ""
    last: Obj = field(default_factory=dict)
    log: list[tuple[float, str]] = field(default_factory=list)
    timer: Timer | None = None

    @property
    def name(self) -> str:
        """As the spec says it."""
        return str(self.spec["name"])

    @property
    def image(self) -> str:
        """As the spec says it."""
        return str(self.spec["image"])

    @property
    def is_sidecar(self) -> bool:
        """An init container that stays."""
        return self.init and self.spec.get("restartPolicy") == "Always"

    @property
    def field_path(self) -> str:
        """Its path in the Pod's spec, as Events have it."""
        where = "initContainers" if self.init else "containers"
        return f"spec.{where}{{{self.name}}}"

    @property
    def over(self) -> bool:
        """It has ended and won't come back."""
        return self.phase == "terminated" and not self.returning

    @property
    def succeeded(self) -> bool:
        """It is over, with exit code 0."""
        return self.over and self.exit_code == 0

    def wait(self, reason: str, message: str = "") -> None:
        """It isn't started yet, for this reason."""
        self.phase, self.reason, self.message = "waiting", reason, message

    def back_off(self) -> float:
        """Seconds until the next try: 10, 20, 40, ... 300."""
        delay = min(10.0 * float(2**self.failures), _LONGEST_BACK_OFF)
        self.failures += 1
        return delay

    def created(self) -> None:
        """The runtime has it; only now does a restart count."""
        self.restarts += self.returning
        self.returning = False

    def begin(self, now: float, container_id: str) -> None:
        """It runs from `now` on."""
        self.phase, self.reason, self.message = "running", "", ""
        self.started, self.container_id = now, container_id

    def end(self, now: float, exit_code: int, reason: str = "", message: str = "") -> None:
        """It has ended; the reason follows from the exit code where none is given."""
        self.phase, self.finished, self.exit_code = "terminated", now, exit_code
        self.reason = reason or ("Completed" if exit_code == 0 else "Error")
        self.message = message
        if exit_code and not message and self.spec["terminationMessagePolicy"] != "File":
            written = [f"{line}\n" for _, line in self.log[-80:] if not line.startswith("sandbox:")]
            self.message = "".join(written)[-2048:]

    def lose(self) -> None:
        """It never came to a status of its own: the kubelet makes one up."""
        self.end(0.0, KILLED, "ContainerStatusUnknown", _UNKNOWN)
        self.lost = True

    def again(self) -> None:
        """Make ready for a restart; what came before moves to lastState."""
        self.last = self.state()

    def state(self) -> Obj:
        """As `state` and `lastState` have it."""
        if self.phase == "running":
            return {"running": {"startedAt": rfc3339(self.started)}}
        if self.lost:
            final = {"exitCode": self.exit_code, "reason": self.reason, "message": self.message}
            return {"terminated": {**final, "startedAt": None, "finishedAt": None}}
        if self.phase == "terminated":
            ended: Obj = {
                "exitCode": self.exit_code,
                "reason": self.reason,
                "startedAt": rfc3339(self.started),
                "finishedAt": rfc3339(self.finished),
                "containerID": self.container_id,
            }
            if self.message:
                ended["message"] = self.message
            return {"terminated": ended}
        waiting = {"reason": self.reason}
        if self.message:
            waiting["message"] = self.message
        return {"waiting": waiting}

    def status(self) -> Obj:
        """Its entry among the Pod's container statuses."""
        running = self.phase == "running"
        out: Obj = {
            "name": self.name,
            "state": self.state(),
            "lastState": self.last,
            "ready": self.succeeded if self.init and not self.is_sidecar else running,
            "restartCount": self.restarts,
            "image": self.image,
            "imageID": self.image_id,
            "started": running,
        }
        if self.container_id:
            out["containerID"] = self.container_id
        if running or (self.phase == "terminated" and not self.lost):
            out.update(self._allocated())
        if mounts := self.spec.get("volumeMounts"):
            out["volumeMounts"] = [_mounted(mount) for mount in mounts]
        return out

    def _allocated(self) -> Obj:
        """The fields that only a container which was created has."""
        resources = self.spec.get("resources", {})
        out: Obj = {"resources": resources, "user": {"linux": self.user}}
        if requests := resources.get("requests"):
            out["allocatedResources"] = requests
        return out


def linux_user(*contexts: Obj) -> Obj:
    """Who a container runs as; the later of the security contexts wins."""
    merged = {name: value for context in contexts for name, value in context.items()}
    group = merged.get("runAsGroup", 0)
    groups = {group, *merged.get("supplementalGroups", ())}
    groups |= {merged["fsGroup"]} if "fsGroup" in merged else set()
    return {"uid": merged.get("runAsUser", 0), "gid": group, "supplementalGroups": sorted(groups)}


def _mounted(mount: Obj) -> Obj:
    known = ("name", "mountPath", "readOnly")
    out = {name: mount[name] for name in known if name in mount}
    if mount.get("readOnly"):
        out["recursiveReadOnly"] = mount.get("recursiveReadOnly", "Disabled")
    return out
