"""What a worker needs of the node that it is on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from engine.sandbox.context import Context
    from engine.sandbox.node.images import Images
    from engine.sandbox.node.recorder import Recorder
    from engine.sandbox.node.worker import Worker
    from engine.sandbox.scenario import Run
    from engine.sandbox.store import Entry
    from engine.sandbox.values import Obj


class Host(Protocol):
    """What a worker needs of the node that it is on."""

    context: Context
    images: Images
    recorder: Recorder
    pull_time: float
    address: str

    def run_of(self, pod: Entry, container: Obj, *, sidecar: bool) -> Run: ...

    def publish(self, worker: Worker, status: Obj) -> None: ...

    def remove(self, worker: Worker) -> None: ...
