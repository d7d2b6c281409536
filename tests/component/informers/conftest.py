"""A sandbox whose time only the test moves, a client of the engine's, and who it tells."""

import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.cluster.client import Client
from engine.cluster.connect import connect
from engine.refs import JobKey
from engine.sandbox import DropConnection, Fault, Sandbox
from engine.telemetry.events import Event
from tests.component.sandbox.conftest import ci, sandbox

__all__ = ["ci", "client", "handler", "sandbox"]
PATIENCE = 60.0


class Handler:
    """Counts how often each job was told of."""

    def __init__(self) -> None:
        self.jobs: Counter[str] = Counter()
        self.errors: list[str] = []
        self.events: list[Event] = []
        self._changed = threading.Condition()

    def on_change(self, key: JobKey) -> None:
        with self._changed:
            self.jobs[key.name] += 1
            self._changed.notify_all()

    def emit(self, event: Event) -> None:
        self.events.append(event)

    def on_error(self, words: str) -> None:
        self.errors.append(words)

    def wait(self, what: Callable[[], bool]) -> None:
        """Until `what` holds; it is looked at whenever something was handler."""
        with self._changed:
            assert self._changed.wait_for(what, PATIENCE), dict(self.jobs)


def miss(sandbox: Sandbox, resource: str, what: Callable[[], object]) -> None:
    """Do `what` while nobody can watch, and forget how the past was."""
    fault = Fault(DropConnection(), verb="watch", times=None)
    sandbox.faults.add(fault)
    sandbox.drop_watches(resource)
    what()
    sandbox.compact(resource)
    sandbox.faults.remove(fault)


@pytest.fixture
def client(sandbox: Sandbox, tmp_path: Path) -> Client:
    return connect(str(sandbox.write_kubeconfig(tmp_path / "kubeconfig"))).client


@pytest.fixture
def handler() -> Handler:
    return Handler()
