"""Stopping the containers of one Pod: the order, the time they get, what they exit with."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from engine.sandbox.node.containers import KILLED
from engine.sandbox.scenario import FOREVER

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.sandbox.clock import Timer
    from engine.sandbox.node.containers import Container
    from engine.sandbox.node.pod_state import PodState


class ContainerStopper:
    """SIGTERM to all but the sidecars, then to one sidecar after the other, the last one first.

    Guarantees: what is left at the end of the grace is killed; ``stopped`` is called when nothing
    runs any more, perhaps more than once. A container may still end by itself meanwhile.
    """

    def __init__(self, state: PodState, stopped: Callable[[], None]) -> None:
        self._state = state
        self._stopped = stopped
        self._until = FOREVER
        self._killer: Timer | None = None
        self._told: set[str] = set()
        self.active = False

    def stop(self, grace: float) -> None:
        """Begin; who asks again can only shorten the time. With a grace of 0 all are killed now."""
        if not self.active:
            self.active = True
            for container in self._state.all:
                if container.phase != "running" and container.timer is not None:
                    container.timer.cancel()
        until = self._state.clock.now() + grace
        if until < self._until:
            self._until = until
            self.close()
            if grace:
                self._killer = self._state.clock.call_at(until, self._kill)
            else:
                self._kill()
                return
        self.sync()

    def close(self) -> None:
        """Kill nothing at the end of the grace any more."""
        if self._killer is not None:
            self._killer.cancel()

    def sync(self) -> None:
        """Send SIGTERM to those whose turn it is."""
        running = self._running()
        if not running:
            self.close()
            self._stopped()
        for container in [c for c in running if not c.is_sidecar] or running[-1:]:
            self._tell(container)

    def _running(self) -> list[Container]:
        return [container for container in self._state.all if container.phase == "running"]

    def _tell(self, container: Container) -> None:
        if container.name in self._told:
            return
        self._told.add(container.name)
        words = f"Stopping container {container.name}"
        self._state.record_event("Normal", "Killing", words, container)
        if container.run.stop != FOREVER:
            ended = partial(self._ended, container)
            self._state.clock.call_later(container.run.stop, ended)

    def _ended(self, container: Container) -> None:
        if not self._state.closed and container.phase == "running":
            self._end(container, container.run.stop_exit_code)
            self.sync()

    def _kill(self) -> None:
        if self._state.closed:
            return
        for container in self._running():
            self._tell(container)
            self._end(container, KILLED)
        self.sync()

    def _end(self, container: Container, code: int) -> None:
        if container.timer is not None:
            container.timer.cancel()
        container.end(self._state.clock.now(), code)
