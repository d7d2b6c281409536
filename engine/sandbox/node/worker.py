"""One Pod's life on the node: volumes, init containers and sidecars, main containers, its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.sandbox.node.containers import CREATING, INITIALIZING, Container, linux_user
from engine.sandbox.node.needs import missing_volume
from engine.sandbox.node.pod_status import pod_status
from engine.sandbox.node.restarts import back_off_words, may_restart
from engine.sandbox.node.starting import RETRY, Starter
from engine.sandbox.node.stopping import Stopper

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.sandbox.clock import Clock, Timer
    from engine.sandbox.node.host import Host
    from engine.sandbox.store import Entry
    from engine.sandbox.values import Obj

_ENDED = ("Succeeded", "Failed")
_LEAST_GRACE = 2.0
_MOMENT = 0.1
"""Seconds between two status writes that follow one another."""
_CLEAN_UP = 1.0
"""Seconds until volumes and the like are gone, and the kubelet deletes the Pod itself."""


class Worker:
    """Runs on the clock's thread only. Every step ends in ``go_on``, which decides what follows."""

    def __init__(self, host: Host, pod: Entry) -> None:
        self.host = host
        self.pod = pod
        self.reason = ""
        self.message = ""
        self.disruption = ""
        self.phase = "Pending"
        self.is_set_up = False
        self.closed = False
        self._deadline: Timer | None = None
        self.started_at = self.clock.now()
        spec = pod.obj["spec"]
        self.init = [self._container(c, init=True) for c in spec.get("initContainers", ())]
        self.main = [self._container(c, init=False) for c in spec["containers"]]
        self._starter = Starter(self)
        self._stopper = Stopper(self)
        self._failure: tuple[str, str, str] | None = None

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
        whole = self.pod.obj["spec"]
        waits = INITIALIZING if whole.get("initContainers") else CREATING
        user = linux_user(whole.get("securityContext", {}), spec.get("securityContext", {}))
        return Container(spec, init, run, reason=waits, user=user)

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
        self._stopper.close()
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
            self.note("Normal", "DeadlineExceeded", words)
            self.fail("DeadlineExceeded", words, grace=self._grace)

    def fail(self, reason: str, message: str, disruption: str = "", grace: float = 0) -> None:
        """End the Pod from outside: deadline, eviction."""
        self._failure = (reason, message, disruption)
        self._stopper.stop(grace)

    def terminate(self, grace: float) -> None:
        """Told to go: containers get their time to stop, then the object is removed."""
        if self.closed:
            return
        if not self.ended:
            self.publish()
        self._stopper.stop(max(grace, _LEAST_GRACE) if grace else 0)

    def stopped(self) -> None:
        """Nothing runs any more. The phase follows a natural end only after a moment."""
        if self._is_doomed or self._failure:
            self._end()
        else:
            self.later(None, _MOMENT, self._end)

    @property
    def _is_doomed(self) -> bool:
        return bool(self.pod.obj["metadata"].get("deletionTimestamp"))

    @property
    def apparent_phase(self) -> str:
        """What the conditions are about: the phase is held back until all have stopped."""
        if self.ended or not all(container.over for container in self.main):
            return self.phase
        if any(container.phase == "running" for container in self.init):
            return self.phase
        return "Failed" if any(container.exit_code for container in self.main) else "Succeeded"

    def _mount(self) -> None:
        missing = missing_volume(self.host.context.storage, self.pod)
        if missing is None:
            self.is_set_up = True
            self.publish()
            self.go_on()
            return
        volume, why = missing
        words = f'MountVolume.SetUp failed for volume "{volume}" : {why}'
        self.note("Warning", "FailedMount", words)
        self.later(None, RETRY, self._mount)

    def go_on(self) -> None:
        """Start what may start now, or come to an end."""
        if self._stopper.active:
            return
        for container in self.init:
            if container.phase == "new":
                container.wait(container.reason)
                self._starter.start(container)
                return
            up = container.is_sidecar and container.started
            if not up and not container.succeeded:
                if container.over:
                    self._finish()
                return
        for container in self.main:
            if container.phase == "new":
                container.wait(container.reason)
                self._starter.start(container)
        if all(container.over for container in self.main):
            self._finish()

    def _finish(self) -> None:
        """The main containers have ended: sidecars are stopped, then comes the phase."""
        self.publish()
        self._stopper.stop(self._grace)

    @property
    def _grace(self) -> float:
        return float(self.pod.obj["spec"].get("terminationGracePeriodSeconds", 30))

    def _end(self) -> None:
        """Phase, then what is torn down: of a Pod that goes in one write, and then it goes."""
        if self.closed:
            return
        if not self.ended:
            self.reason, self.message, self.disruption = self._failure or ("", "", "")
            succeeded = all(container.succeeded for container in self.main)
            self.phase = "Succeeded" if succeeded and not self._failure else "Failed"
            if self._deadline is not None:
                self._deadline.cancel()
            if self._is_doomed:
                self._tear_down()
            else:
                self.publish()
                self.clock.call_later(_MOMENT, self._tear_down)
        if self._is_doomed:
            self.clock.call_later(_CLEAN_UP, lambda: self.host.remove(self))

    def _tear_down(self) -> None:
        """The Pod's network is gone; what never got a status counts as failed."""
        for container in self._unaccounted():
            container.lose()
        self.is_set_up = False
        self.publish()

    def _unaccounted(self) -> list[Container]:
        """Once the Pod was initialized, the main containers; before, those that had their turn."""
        if all(c.succeeded or (c.is_sidecar and c.started) for c in self.init):
            known = self.main
        else:
            begun = [at for at, c in enumerate(self.init) if c.phase == "terminated"]
            known = self.init[: max(begun, default=0) + 1]
        return [container for container in known if container.phase != "terminated"]

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
        if self._stopper.active:
            self._stopper.go_on()
            return
        container.returning = may_restart(container, self.pod.obj["spec"]["restartPolicy"])
        if container.returning:
            self.publish()
            self.later(container, _MOMENT, lambda: self._restart(container))
            return
        if not all(c.over for c in self.main):
            self.publish()
        self.go_on()

    def _restart(self, container: Container) -> None:
        """The first restart comes at once; from then on CrashLoopBackOff."""
        first = not container.restarts
        container.again()
        if first:
            self._starter.start(container)
            return
        delay = container.back_off()
        container.wait("CrashLoopBackOff", back_off_words(self.pod, container.name, delay))
        about = f"Back-off restarting failed container {container.name} in pod {self.pod.name}"
        about += f"_{self.pod.namespace}({self.pod.uid})"
        self.note("Warning", "BackOff", about, container)
        self.publish()
        self.later(container, delay, lambda: self._starter.start(container))
