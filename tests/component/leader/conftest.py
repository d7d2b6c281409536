"""Engines that want to act for one source, on the sandbox and on a real API server."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from engine.cluster.connect import connect
from engine.decide.lease import lease_name
from engine.errors import UnreachableError
from engine.runtime.leader import Leader
from engine.sandbox import Sandbox
from tests.cluster.cluster import Cluster
from tests.cluster.errors import ClusterUnavailable
from tests.cluster.fixtures import do_without
from tests.support.api import Api

SOURCE = "team-web"
LEASES = "coordination.k8s.io/v1/leases"


@dataclass(frozen=True)
class Place:
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
    """One engine's Leader, what it said, and a network that can be cut."""

    def __init__(self, leader: Leader, said: list[str], cut: threading.Event) -> None:
        self.leader = leader
        self.said = said
        self.cut = cut
        self.stopped = threading.Event()
        self.lost: list[str] = []
        self.regained: list[bool] = []

    def acquire(self) -> bool:
        return self.leader.acquire(self.stopped)

    def acquire_soon(self) -> Future[bool]:
        """`acquire` in a thread of its own."""
        future: Future[bool] = Future()

        def run() -> None:
            try:
                future.set_result(self.acquire())
            except Exception as error:  # noqa: BLE001 - raised again where it is asked for
                future.set_exception(error)

        threading.Thread(target=run, daemon=True).start()
        return future

    def keep(self) -> None:
        self.leader.start(self.lost.append, lambda: self.regained.append(self.leader.holds))

    def lead(self) -> Candidate:
        assert self.acquire()
        self.keep()
        return self

    def die(self) -> None:
        """As a process does that is killed: nothing is renewed, nothing is given up."""
        self.leader._ended.set()

    def hears(self, words: str) -> bool:
        return any(words in line for line in self.said)


@dataclass
class Candidates:
    """Makes engines, each with a connection of its own; stops them after the test."""

    place: Place
    made: list[Candidate] = field(default_factory=list)

    def __call__(
        self,
        identity: str,
        *,
        waits: bool = False,
        duration: float = 1.0,
        source: str = SOURCE,
        kubeconfig: Path | None = None,
    ) -> Candidate:
        said: list[str] = []
        cut = threading.Event()
        client = connect(str(kubeconfig or self.place.kubeconfig)).client
        request = client.request

        def over_the_wire(*args: Any, **kwargs: Any) -> dict[str, Any]:
            if cut.is_set():
                raise UnreachableError("the wire is cut")
            return request(*args, **kwargs)

        client.request = over_the_wire  # type: ignore[method-assign]
        leader = Leader(
            client,
            namespace=self.place.namespace,
            source=source,
            waits=waits,
            duration=duration,
            identity=identity,
            say=said.append,
        )
        candidate = Candidate(leader, said, cut)
        self.made.append(candidate)
        return candidate


def eventually(true: Callable[[], object], within: float = 15.0) -> None:
    end = time.monotonic() + within
    while not true():
        assert time.monotonic() < end, f"not within {within} s"
        time.sleep(0.01)


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as sandbox:
        yield sandbox


def sandbox_place(sandbox: Sandbox, folder: Path) -> Place:
    def without_rights() -> Path:
        sandbox.deny("*", "leases", user="nobody")
        return sandbox.write_kubeconfig(folder / "nobody", user="nobody")

    sandbox.namespace("ci")
    kubeconfig = sandbox.write_kubeconfig(folder / "kubeconfig")
    return Place(kubeconfig, "ci", Api.from_kubeconfig(kubeconfig), without_rights)


@pytest.fixture(params=["sandbox", pytest.param("real", marks=pytest.mark.cluster)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "sandbox":
        return sandbox_place(request.getfixturevalue("sandbox"), tmp_path)
    cluster: Cluster = request.getfixturevalue("cluster")

    def without_rights() -> Path:
        try:
            return cluster.kubeconfig_for(f"nobody-{os.getpid()}")
        except ClusterUnavailable as error:
            do_without(str(error))

    namespace: str = request.getfixturevalue("namespace")
    return Place(
        cluster.kubeconfig, namespace, Api.from_kubeconfig(cluster.kubeconfig), without_rights
    )


@pytest.fixture
def candidate(place: Place) -> Iterator[Candidates]:
    candidates = Candidates(place)
    yield candidates
    for made in candidates.made:
        made.stopped.set()
        made.die()
