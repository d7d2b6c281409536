"""What the pods of a node need of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from engine.sandbox.context import Context
    from engine.sandbox.node.images import Images
    from engine.sandbox.node.recorder import Recorder
    from engine.sandbox.scenario import Run
    from engine.sandbox.store import Entry
    from engine.sandbox.values import Obj


class NodeServices(Protocol):
    """What the pods of a node need of it."""

    context: Context
    images: Images
    recorder: Recorder
    pull_time: float
    """Seconds that every pull takes."""
    address: str

    def run_of(self, pod: Entry, container: Obj, *, sidecar: bool) -> Run:
        """How this container is to run, by the scenario."""
        ...

    def publish(self, pod: Entry, status: Obj) -> None:
        """Write a Pod's status, unless the node is cut off or nothing has changed."""
        ...

    def remove(self, pod: Entry) -> None:
        """Delete the object of a Pod of which nothing is left on the node."""
        ...
