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
    restarts: int = 0
    failures: int = 0
    image_id: str = ""
    container_id: str = ""
    last: Obj = field(default_factory=dict)
    log: list[tuple[float, str]] = field(default_factory=list)
    timer: Timer | None = None

    @property
    def name(self) -> str:
        return str(self.spec["name"])

    @property
    def image(self) -> str:
        return str(self.spec["image"])

    @property
    def is_sidecar(self) -> bool:
        return self.init and self.spec.get("restartPolicy") == "Always"

    @property
    def field_path(self) -> str:
        where = "initContainers" if self.init else "containers"
        return f"spec.{where}{{{self.name}}}"

    @property
    def succeeded(self) -> bool:
        return self.phase == "terminated" and self.exit_code == 0

    def wait(self, reason: str, message: str = "") -> None:
        self.phase, self.reason, self.message = "waiting", reason, message

    def back_off(self) -> float:
        """Seconds until the next try: 10, 20, 40, ... 300."""
        delay = min(10.0 * float(2**self.failures), _LONGEST_BACK_OFF)
        self.failures += 1
        return delay

    def begin(self, now: float, container_id: str) -> None:
        self.phase, self.reason, self.message = "running", "", ""
        self.started, self.container_id = now, container_id

    def end(self, now: float, exit_code: int, reason: str = "", message: str = "") -> None:
        self.phase, self.finished, self.exit_code = "terminated", now, exit_code
        self.reason = reason or ("Completed" if exit_code == 0 else "Error")
        self.message = message

    def lose(self) -> None:
        """It never came to a status of its own: the kubelet makes one up."""
        self.end(0.0, KILLED, "ContainerStatusUnknown", _UNKNOWN)
        self.lost = True

    def again(self) -> None:
        """Make ready for a restart; what came before moves to lastState."""
        self.last = self.state()
        self.restarts += 1

    def state(self) -> Obj:
        if self.phase == "running":
            return {"running": {"startedAt": rfc3339(self.started)}}
        if self.lost:
            told = {"exitCode": self.exit_code, "reason": self.reason, "message": self.message}
            return {"terminated": {**told, "startedAt": None, "finishedAt": None}}
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
        return out
