"""From a container that may start to one that runs, or to the kubelet's reason why it doesn't."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.sandbox.node.containers import NEVER_STARTED
from engine.sandbox.node.needs import missing_env
from engine.sandbox.node.pulling import Puller
from engine.sandbox.scenario import FOREVER

if TYPE_CHECKING:
    from engine.sandbox.node.containers import Container
    from engine.sandbox.node.worker import Worker

RETRY = 2.0


class Starter:
    """Starts the containers of one Pod: the image, the environment, the process."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._puller = Puller(worker)

    def start(self, container: Container) -> None:
        self._puller.fetch(container, lambda: self._create(container))

    def _create(self, container: Container) -> None:
        worker, run = self._worker, container.run
        why = missing_env(worker.host.context.storage, worker.pod, container.spec)
        if why:
            container.wait("CreateContainerConfigError", why)
            worker.note("Warning", "Failed", f"Error: {why}", container)
            worker.publish()
            worker.later(container, RETRY, lambda: self._create(container))
            return
        worker.note("Normal", "Created", "Container created", container)
        container.created()
        now = worker.clock.now()
        if run.start_error:
            worker.note("Warning", "Failed", f"Error: {run.start_error}", container)
            container.end(now, NEVER_STARTED, "StartError", run.start_error)
            worker.exited(container)
            return
        container.begin(now, f"sandbox://{worker.pod.uid}/{container.name}/{container.restarts}")
        container.log.extend((now, line) for line in run.log)
        worker.note("Normal", "Started", "Container started", container)
        if run.duration != FOREVER:
            worker.later(container, run.duration, lambda: worker.exit(container))
        worker.started(container)
