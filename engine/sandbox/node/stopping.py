"""Stopping the containers of one Pod: the order, the time they get, what they exit with."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from engine.sandbox.node.containers import KILLED
from engine.sandbox.scenario import FOREVER

if TYPE_CHECKING:
    from engine.sandbox.clock import Timer
    from engine.sandbox.node.containers import Container
    from engine.sandbox.node.worker import Worker


class Stopper:
    """SIGTERM to all but the sidecars, then to one sidecar after the other, the last one first.

    Guarantees: what is left at the end of the grace is killed; ``Worker.stopped`` is called when
    nothing runs any more, perhaps more than once. A container may still end by itself meanwhile.
    """

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._until = FOREVER
        self._killer: Timer | None = None
        self._told: set[str] = set()
        self.active = False

    def stop(self, grace: float) -> None:
        """Begin; who asks again can only shorten the time. With a grace of 0 all are killed now."""
        if not self.active:
            self.active = True
            for container in self._worker.all:
                if container.phase != "running" and container.timer is not None:
                    container.timer.cancel()
        until = self._worker.clock.now() + grace
        if until < self._until:
            self._until = until
            self.close()
            if grace:
                self._killer = self._worker.clock.call_at(until, self._kill)
            else:
                self._kill()
                return
        self.go_on()

    def close(self) -> None:
        if self._killer is not None:
            self._killer.cancel()

    def go_on(self) -> None:
        """Tell those whose turn it is."""
        running = self._running()
        if not running:
            self.close()
            self._worker.stopped()
        for container in [c for c in running if not c.is_sidecar] or running[-1:]:
            self._tell(container)

    def _running(self) -> list[Container]:
        return [container for container in self._worker.all if container.phase == "running"]

    def _tell(self, container: Container) -> None:
        if container.name in self._told:
            return
        self._told.add(container.name)
        words = f"Stopping container {container.name}"
        self._worker.note("Normal", "Killing", words, container)
        if container.run.stop != FOREVER:
            ended = partial(self._ended, container)
            self._worker.clock.call_later(container.run.stop, ended)

    def _ended(self, container: Container) -> None:
        if not self._worker.closed and container.phase == "running":
            self._end(container, container.run.stop_exit_code)
            self.go_on()

    def _kill(self) -> None:
        if self._worker.closed:
            return
        for container in self._running():
            self._tell(container)
            self._end(container, KILLED)
        self.go_on()

    def _end(self, container: Container, code: int) -> None:
        if container.timer is not None:
            container.timer.cancel()
        container.end(self._worker.clock.now(), code)
