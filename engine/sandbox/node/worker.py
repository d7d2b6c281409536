"""One Pod's life on the node: volumes, init containers and sidecars, main containers, its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.sandbox.node.containers import CREATING, INITIALIZING, KILLED, Container
from engine.sandbox.node.needs import missing_volume
from engine.sandbox.node.pod_status import pod_status
from engine.sandbox.node.restarts import back_off_words, may_restart
from engine.sandbox.node.starting import RETRY, Starter

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.sandbox.clock import Clock, Timer
    from engine.sandbox.node.host import Host
    from engine.sandbox.store import Entry
    from engine.sandbox.values import Obj

_ENDED = ("Succeeded", "Failed")


class Worker:
    """Runs on the clock's thread only. Every step ends in ``go_on``, which decides what follows."""

    def __init__(self, host: Host, pod: Entry) -> None:
        self.host = host
        self.pod = pod
        self.reason = ""
        self.message = ""
        self.disruption = ""
        self.phase = "Pending"
        self.closed = False
        self._deadline: Timer | None = None
        self.started_at = self.clock.now()
        spec = pod.obj["spec"]
        self.init = [self._container(c, init=True) for c in spec.get("initContainers", ())]
        self.main = [self._container(c, init=False) for c in spec["containers"]]
        self._starter = Starter(self)

    @property
    def clock(self) -> Clock:
        return self.host.context.clock

    @property
    def all(self) -> list[Container]:
        return [*self.init, *self.main]

    @property
    def ended(self) -> bool:
        return self.phase in _ENDED

    def _container(self, spec: Obj, *, init: bool) -> Container:
        sidecar = init and spec.get("restartPolicy") == "Always"
        run = self.host.run_of(self.pod, spec, sidecar=sidecar)
        waits = INITIALIZING if self.pod.obj["spec"].get("initContainers") else CREATING
        return Container(spec, init, run, reason=waits)

    def begin(self) -> None:
        """The kubelet has seen the Pod: its start time counts from here."""
        self.started_at = self.clock.now()
        self._set_deadline()
        self.publish()
        self._mount()

    def changed(self, pod: Entry) -> None:
        """The Pod's object has changed: a shorter deadline, or the wish to delete it."""
        before, self.pod = self.pod, pod
        deadline = pod.obj["spec"].get("activeDeadlineSeconds")
        if deadline != before.obj["spec"].get("activeDeadlineSeconds"):
            self._set_deadline()

    def close(self) -> None:
        """The Pod is gone; nothing more is to happen."""
        self.closed = True
        for timer in (self._deadline, *(container.timer for container in self.all)):
            if timer is not None:
                timer.cancel()

    def publish(self) -> None:
        if not self.closed:
            self.host.publish(self, pod_status(self))

    def later(self, container: Container | None, delay: float, action: Callable[[], None]) -> None:
        """Do something unless the Pod is gone or at its end by then."""
        timer = self.clock.call_later(
            delay, lambda: None if self.closed or self.ended else action()
        )
        if container is not None:
            container.timer = timer

    def note(
        self, kind: str, reason: str, message: str, container: Container | None = None
    ) -> None:
        path = container.field_path if container else ""
        self.host.recorder.note(self.pod, kind, reason, message, path)

    def _set_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        seconds = self.pod.obj["spec"].get("activeDeadlineSeconds")
        if seconds is not None:
            self._deadline = self.clock.call_at(self.started_at + seconds, self._too_late)

    def _too_late(self) -> None:
        if not self.closed and not self.ended:
            words = "Pod was active on the node longer than the specified deadline"
            self.note("Normal", "DeadlineExceeded", words.replace("the specified", "specified"))
            self.fail("DeadlineExceeded", words)

    def fail(self, reason: str, message: str, disruption: str = "") -> None:
        """End the Pod from outside: deadline, eviction."""
        self.reason, self.message, self.disruption = reason, message, disruption
        self.kill_all()
        self.phase = "Failed"
        self.publish()

    def kill_all(self) -> None:
        for container in self.all:
            if container.phase == "running":
                self._killed(container)
            elif container.timer is not None:
                container.timer.cancel()

    def _killed(self, container: Container) -> None:
        words = f"Stopping container {container.name}"
        self.note("Normal", "Killing", words, container)
        if container.timer is not None:
            container.timer.cancel()
        container.end(self.clock.now(), KILLED)

    def terminate(self, grace: float) -> None:
        """Told to go: containers get their time to stop, then the object is removed."""
        stops = [c.run.stop for c in self.all if c.phase == "running"]
        wait = min(max(stops, default=0.0), grace)
        self.clock.call_later(wait, self._gone)

    def _gone(self) -> None:
        if self.closed:
            return
        if not self.ended:
            self.kill_all()
            bad = any(c.phase != "terminated" or c.exit_code for c in self.main)
            self.phase = "Failed" if bad else "Succeeded"
            self.publish()
        self.host.remove(self)

    def _mount(self) -> None:
        missing = missing_volume(self.host.context.storage, self.pod)
        if missing is None:
            self.go_on()
            return
        volume, why = missing
        words = f'MountVolume.SetUp failed for volume "{volume}" : {why}'
        self.note("Warning", "FailedMount", words)
        self.later(None, RETRY, self._mount)

    def go_on(self) -> None:
        """Start what may start now, or come to an end."""
        for container in self.init:
            if container.phase == "new":
                container.wait(container.reason)
                self._starter.start(container)
                return
            up = container.is_sidecar and container.started
            if not up and not container.succeeded:
                if container.phase == "terminated":
                    self._end("Failed")
                return
        for container in self.main:
            if container.phase == "new":
                container.wait(container.reason)
                self._starter.start(container)
        if all(container.phase == "terminated" for container in self.main):
            self._finish()

    def _finish(self) -> None:
        """The main containers have ended: sidecars are stopped, last started first."""
        running = [c for c in self.init if c.is_sidecar and c.phase == "running"]
        for container in reversed(running):
            self.note("Normal", "Killing", f"Stopping container {container.name}", container)
            if container.timer is not None:
                container.timer.cancel()
            container.end(self.clock.now() + container.run.stop, 0)
        wait = max((c.run.stop for c in running), default=0.0)
        failed = any(container.exit_code for container in self.main)
        if wait:
            self.later(None, wait, lambda: self._end("Failed" if failed else "Succeeded"))
        else:
            self._end("Failed" if failed else "Succeeded")

    def _end(self, phase: str) -> None:
        self.kill_all()
        self.phase = phase
        if self._deadline is not None:
            self._deadline.cancel()
        self.publish()

    def started(self, container: Container) -> None:
        """A container runs; behind a sidecar the next one may start."""
        if not container.init:
            self.phase = "Running"
        self.publish()
        if container.is_sidecar:
            self.go_on()

    def exit(self, container: Container) -> None:
        run = container.run
        container.end(self.clock.now(), run.exit_code, run.reason, run.message)
        self.exited(container)

    def exited(self, container: Container) -> None:
        if may_restart(container, self.pod.obj["spec"]["restartPolicy"]):
            self._restart(container)
            return
        if any(c.phase != "terminated" for c in self.main):
            self.publish()
        self.go_on()

    def _restart(self, container: Container) -> None:
        """The first restart comes at once; from then on CrashLoopBackOff."""
        first = not container.restarts
        container.again()
        if first:
            self.publish()
            self._starter.start(container)
            return
        delay = container.back_off()
        container.wait("CrashLoopBackOff", back_off_words(self.pod, container.name, delay))
        about = f"Back-off restarting failed container {container.name} in pod {self.pod.name}"
        about += f"_{self.pod.namespace}({self.pod.uid})"
        self.note("Warning", "BackOff", about, container)
        self.publish()
        self.later(container, delay, lambda: self._starter.start(container))
