"""One Pod's life on the node: volumes, init containers and sidecars, main containers, its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.sandbox.node.container_stopper import ContainerStopper
from engine.sandbox.node.containers import NEVER_STARTED
from engine.sandbox.node.dependencies import missing_env, missing_volume
from engine.sandbox.node.image_puller import ImagePuller
from engine.sandbox.node.pod_state import PodState
from engine.sandbox.scenario import FOREVER

if TYPE_CHECKING:
    from engine.sandbox.clock import Timer
    from engine.sandbox.node.containers import Container
    from engine.sandbox.node.node import Node
    from engine.sandbox.store import Entry

_RETRY = 2.0
"""Seconds until what a volume or a container lacks is looked for again."""
_LEAST_GRACE = 2.0
_MOMENT = 0.1
"""Seconds between two status writes that follow one another."""
_CLEAN_UP = 1.0
"""Seconds until volumes and the like are gone, and the kubelet deletes the Pod itself."""


class PodWorker:
    """Runs on the clock's thread only. Every step ends in ``sync``, which decides what follows."""

    def __init__(self, node: Node, pod: Entry) -> None:
        self.state = PodState(node, pod)
        self._deadline: Timer | None = None
        self._puller = ImagePuller(self.state)
        self._stopper = ContainerStopper(self.state, self._stopped)
        self._failure: tuple[str, str, str] | None = None

    @property
    def pod(self) -> Entry:
        """Its object, as it was last seen."""
        return self.state.pod

    def begin(self) -> None:
        """The kubelet has seen the Pod: its start time counts from here."""
        self.state.started_at = self.state.clock.now()
        self._set_deadline()
        self.state.publish()
        self._mount()

    def changed(self, pod: Entry) -> None:
        """The Pod's object has changed: a shorter deadline, or the wish to delete it."""
        before, self.state.pod = self.pod, pod
        deadline = pod.obj["spec"].get("activeDeadlineSeconds")
        if deadline != before.obj["spec"].get("activeDeadlineSeconds"):
            self._set_deadline()

    def close(self) -> None:
        """The Pod is gone; nothing more is to happen."""
        self.state.closed = True
        self._stopper.close()
        for timer in (self._deadline, *(container.timer for container in self.state.all)):
            if timer is not None:
                timer.cancel()

    def _set_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        seconds = self.pod.obj["spec"].get("activeDeadlineSeconds")
        if seconds is not None:
            self._deadline = self.state.clock.call_at(
                self.state.started_at + seconds, self._deadline_exceeded
            )

    def _deadline_exceeded(self) -> None:
        if not self.state.closed and not self.state.ended:
            words = "Pod was active on the node longer than the specified deadline"
            self.state.record_event("Normal", "DeadlineExceeded", words)
            self.fail("DeadlineExceeded", words, grace=self._grace)

    def fail(self, reason: str, message: str, disruption: str = "", grace: float = 0) -> None:
        """End the Pod from outside: deadline, eviction."""
        self._failure = (reason, message, disruption)
        self._stopper.stop(grace)

    def terminate(self, grace: float) -> None:
        """Stop the containers within their grace, then remove the object."""
        if self.state.closed:
            return
        if not self.state.ended:
            self.state.publish()
        self._stopper.stop(max(grace, _LEAST_GRACE) if grace else 0)

    def _stopped(self) -> None:
        """Nothing runs any more. The phase follows a natural end only after a moment."""
        if self.state.is_doomed or self._failure:
            self._end()
        else:
            self.state.later(None, _MOMENT, self._end)

    def _mount(self) -> None:
        missing = missing_volume(self.state.node.context.storage, self.pod)
        if missing is None:
            self.state.is_set_up = True
            self.state.publish()
            self.sync()
            return
        volume, why = missing
        words = f'MountVolume.SetUp failed for volume "{volume}" : {why}'
        self.state.record_event("Warning", "FailedMount", words)
        self.state.later(None, _RETRY, self._mount)

    def sync(self) -> None:
        """Start what may start now, or come to an end."""
        if self._stopper.active:
            return
        for container in self.state.init:
            if container.phase == "new":
                container.wait(container.reason)
                self._start(container)
                return
            up = container.is_sidecar and container.started
            if not up and not container.succeeded:
                if container.over:
                    self._finish()
                return
        for container in self.state.main:
            if container.phase == "new":
                container.wait(container.reason)
                self._start(container)
        if all(container.over for container in self.state.main):
            self._finish()

    def _finish(self) -> None:
        """The main containers have ended: sidecars are stopped, then comes the phase."""
        self.state.publish()
        self._stopper.stop(self._grace)

    @property
    def _grace(self) -> float:
        return float(self.pod.obj["spec"].get("terminationGracePeriodSeconds", 30))

    def _end(self) -> None:
        """Phase, then what is torn down: of a Pod that goes in one write, and then it goes."""
        if self.state.closed:
            return
        if not self.state.ended:
            self.state.reason, self.state.message, self.state.disruption = self._failure or (
                "",
                "",
                "",
            )
            succeeded = all(container.succeeded for container in self.state.main)
            self.state.phase = "Succeeded" if succeeded and not self._failure else "Failed"
            if self._deadline is not None:
                self._deadline.cancel()
            if self.state.is_doomed:
                self._tear_down()
            else:
                self.state.publish()
                self.state.clock.call_later(_MOMENT, self._tear_down)
        if self.state.is_doomed:
            self.state.clock.call_later(_CLEAN_UP, lambda: self.state.node.remove(self.pod))

    def _tear_down(self) -> None:
        """The Pod's network is gone; what never got a status counts as failed."""
        for container in self._unaccounted():
            container.lose()
        self.state.is_set_up = False
        self.state.publish()

    def _unaccounted(self) -> list[Container]:
        """Once the Pod was initialized, the main containers; before, those that had their turn."""
        if self.state.is_initialized:
            known = self.state.main
        else:
            begun = [at for at, c in enumerate(self.state.init) if c.phase == "terminated"]
            known = self.state.init[: max(begun, default=0) + 1]
        return [container for container in known if container.phase != "terminated"]

    def _start(self, container: Container) -> None:
        """Have its image there, then make it."""
        self._puller.fetch(container, lambda: self._create(container))

    def _create(self, container: Container) -> None:
        """Its environment and its process, or the kubelet's reason why it has none."""
        state, run = self.state, container.run
        why = missing_env(state.node.context.storage, state.pod, container.spec)
        if why:
            container.wait("CreateContainerConfigError", why)
            state.record_event("Warning", "Failed", f"Error: {why}", container)
            state.publish()
            state.later(container, _RETRY, lambda: self._create(container))
            return
        state.record_event("Normal", "Created", "Container created", container)
        container.created()
        now = state.clock.now()
        if run.start_error:
            state.record_event("Warning", "Failed", f"Error: {run.start_error}", container)
            container.end(now, NEVER_STARTED, "StartError", run.start_error)
            self._exited(container)
            return
        container.begin(now, f"sandbox://{state.pod.uid}/{container.name}/{container.restarts}")
        container.log.extend((now, line) for line in run.log)
        state.record_event("Normal", "Started", "Container started", container)
        if run.duration != FOREVER:
            state.later(container, run.duration, lambda: self._exit(container))
        self._started(container)

    def _started(self, container: Container) -> None:
        """A container runs; behind a sidecar the next one may start."""
        if not container.init:
            self.state.phase = "Running"
        self.state.publish()
        if container.is_sidecar:
            self.sync()

    def _exit(self, container: Container) -> None:
        run = container.run
        container.end(self.state.clock.now(), run.exit_code, run.reason, run.message)
        self._exited(container)

    def _exited(self, container: Container) -> None:
        if self._stopper.active:
            self._stopper.sync()
            return
        container.returning = _may_restart(container, self.pod.obj["spec"]["restartPolicy"])
        if container.returning:
            self.state.publish()
            self.state.later(container, _MOMENT, lambda: self._restart(container))
            return
        if not all(c.over for c in self.state.main):
            self.state.publish()
        self.sync()

    def _restart(self, container: Container) -> None:
        """The first restart comes at once; from then on CrashLoopBackOff."""
        first = not container.restarts
        container.again()
        if first:
            self._start(container)
            return
        delay = container.back_off()
        container.wait("CrashLoopBackOff", _back_off_words(self.pod, container.name, delay))
        about = f"Back-off restarting failed container {container.name} in pod {self.pod.name}"
        about += f"_{self.pod.namespace}({self.pod.uid})"
        self.state.record_event("Warning", "BackOff", about, container)
        self.state.publish()
        self.state.later(container, delay, lambda: self._start(container))


def _may_restart(container: Container, policy: str) -> bool:
    """Sidecars always; init containers only until they have succeeded."""
    if container.is_sidecar:
        return True
    if container.init and container.succeeded:
        return False
    return policy == "Always" or (policy == "OnFailure" and not container.succeeded)


def _back_off_words(pod: Entry, container: str, delay: float) -> str:
    return (
        f"back-off {int(delay)}s restarting failed container={container} "
        f"pod={pod.name}_{pod.namespace}({pod.uid})"
    )
