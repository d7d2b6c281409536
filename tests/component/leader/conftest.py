"""Engines that want to act for one source, on the sandbox and on a real API server."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from engine.cluster.connect import connect
from engine.errors import EngineError, UnreachableError
from engine.runtime.lease import lease_name
from engine.runtime.membership import LeaseLock, Membership
from engine.sandbox import Sandbox
from engine.telemetry.events import Event, LeaderChanged, Notice
from tests.cluster.cluster import Cluster
from tests.cluster.errors import ClusterUnavailable
from tests.cluster.fixtures import do_without
from tests.support.api import Api

SOURCE = "team-web"
LEASES = "coordination.k8s.io/v1/leases"


@dataclass(frozen=True)
class Target:
    """One API server and a namespace of the test's own."""

    kubeconfig: Path
    namespace: str
    api: Api
    without_rights: Callable[[], Path]

    def lease(self, source: str = SOURCE) -> dict[str, Any]:
        return self.api.get(LEASES, lease_name(source), self.namespace)

    def spec(self, source: str = SOURCE) -> dict[str, Any]:
        spec: dict[str, Any] = self.lease(source)["spec"]
        return spec


class Candidate:
    """One engine's elector in a thread, what it said, and a network that can be cut."""

    def __init__(self, lock: LeaseLock, *, shares: bool, cut: threading.Event) -> None:
        self.cut = cut
        self.identity = lock.identity
        self.said: list[str] = []
        self.changes: list[bool] = []
        self.heartbeats: list[float] = []
        self.failure: EngineError | None = None
        self.elector = Membership(
            lock, shares=shares, emit=self._hear, on_change=self.changes.append
        )
        self._stop = threading.Event()
        self._thread = threading.Thread()

    def start(self) -> Candidate:
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(self._stop,), daemon=True)
        self._thread.start()
        return self

    def lead(self) -> Candidate:
        """Start, and wait until it leads. Errors: what ended it before."""
        self.start()
        eventually(lambda: self.elector.is_member or not self._thread.is_alive(), 30.0)
        return self.checked()

    def ended(self) -> Candidate:
        """Wait until it has ended by itself. Errors: what ended it."""
        eventually(lambda: not self._thread.is_alive())
        return self.checked()

    def checked(self) -> Candidate:
        if self.failure is not None:
            raise self.failure
        return self

    def stop(self, within: float = 60.0) -> None:
        """End in order: the Lease is released."""
        self._stop.set()
        self._thread.join(within)
        assert not self._thread.is_alive()

    def die(self) -> None:
        """As a process does that is killed: nothing is renewed, nothing is released."""
        self.cut.set()
        self._stop.set()

    def hears(self, words: str) -> bool:
        return any(words in line for line in self.said)

    def _run(self, stop: threading.Event) -> None:
        try:
            self.elector.run(stop, self.heartbeats.append)
        except EngineError as error:
            self.failure = error

    def _hear(self, event: Event) -> None:
        if isinstance(event, Notice):
            self.said.append(event.message)
        else:
            assert isinstance(event, LeaderChanged)


@dataclass
class Candidates:
    """Makes engines, each with a connection of its own; stops them after the test."""

    place: Target
    made: list[Candidate] = field(default_factory=list)

    def __call__(
        self,
        identity: str,
        *,
        shares: bool = False,
        duration: float = 1.0,
        source: str = SOURCE,
        kubeconfig: Path | None = None,
    ) -> Candidate:
        cut = threading.Event()
        client = connect(str(kubeconfig or self.place.kubeconfig)).client
        request = client.request

        def over_the_wire(*args: Any, **kwargs: Any) -> dict[str, Any]:
            if cut.is_set():
                raise UnreachableError("the wire is cut")
            return request(*args, **kwargs)

        client.request = over_the_wire  # type: ignore[method-assign]
        lock = LeaseLock(client, self.place.namespace, source, duration)
        lock.identity = identity
        candidate = Candidate(lock, shares=shares, cut=cut)
        self.made.append(candidate)
        return candidate


def eventually(true: Callable[[], object], within: float = 60.0) -> None:
    end = time.monotonic() + within
    while not true():
        assert time.monotonic() < end, f"not within {within} s"
        time.sleep(0.01)


def owners(engines: list[Candidate]) -> dict[str, list[str]]:
    """Which engines own each of a hundred jobs."""
    return {
        f"ci/job-{number}": [e.identity for e in engines if e.elector.owns(f"ci/job-{number}")]
        for number in range(100)
    }


def shared(engines: list[Candidate]) -> bool:
    """Whether each job is one engine's, and each engine has some."""
    found = owners(engines)
    has_one = all(len(names) == 1 for names in found.values())
    return has_one and {name for (name,) in found.values()} == {e.identity for e in engines}


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as sandbox:
        yield sandbox


def sandbox_place(sandbox: Sandbox, folder: Path) -> Target:
    def without_rights() -> Path:
        sandbox.deny("*", "leases", user="nobody")
        return sandbox.write_kubeconfig(folder / "nobody", user="nobody")

    sandbox.namespace("ci")
    kubeconfig = sandbox.write_kubeconfig(folder / "kubeconfig")
    return Target(kubeconfig, "ci", Api.from_kubeconfig(kubeconfig), without_rights)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """As in tests/e2e: `make test-cluster` shows those marked `real`, `make soak` the rest."""
    if "place" in metafunc.fixturenames:
        marks = [pytest.mark.cluster]
        if not metafunc.definition.get_closest_marker("real"):
            marks.append(pytest.mark.soak)
        places = ["sandbox", pytest.param("real", marks=marks)]
        metafunc.parametrize("place", places, indirect=True)


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Target:
    if request.param == "sandbox":
        return sandbox_place(request.getfixturevalue("sandbox"), tmp_path)
    cluster: Cluster = request.getfixturevalue("cluster")

    def without_rights() -> Path:
        try:
            return cluster.kubeconfig_for(f"nobody-{os.getpid()}")
        except ClusterUnavailable as error:
            do_without(str(error))

    namespace: str = request.getfixturevalue("namespace")
    return Target(
        cluster.kubeconfig, namespace, Api.from_kubeconfig(cluster.kubeconfig), without_rights
    )


@pytest.fixture
def candidate(place: Target) -> Iterator[Candidates]:
    candidates = Candidates(place)
    yield candidates
    for made in candidates.made:
        made.die()
