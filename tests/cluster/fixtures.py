"""The pytest plugin: a real cluster, and what tests need to act on it.

Markers say what a test needs: `cluster` an API server, `node` pods that run, `registry` images and
registries in our hands. Each of the others implies `cluster`, and `make test` leaves those tests
out. Without a cluster the test is skipped with one line; with ENGINE_TEST_REQUIRE_CLUSTER=1 it
fails.
"""

from __future__ import annotations

import os
import re
import uuid
from collections import Counter
from contextlib import ExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING, NoReturn

import pytest

from tests.cluster import lifecycle
from tests.cluster.cluster import Cluster
from tests.cluster.errors import ClusterUnavailable, ComponentFailed
from tests.cluster.images import Images
from tests.cluster.session import session_cluster
from tests.cluster.settings import Settings
from tests.cluster.turns import turn, turns_of
from tests.support.api import Api

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from tests.cluster.node import Node
    from tests.cluster.registry import Registry

_MARKERS = {
    "cluster": "needs an API server",
    "node": "needs a node on which pods run",
    "registry": "needs image registries that tests can change and stop",
    "since(major, minor)": "holds from this release of Kubernetes on",
    "lifecycle": "brings a second cluster up and down (slow)",
    "alone": "disturbs whoever uses the cluster at the same time",
}
_PROGRAMS = {"helm", "prometheus"}
"""Fixtures of programs that are built or fetched."""
_ALONE = {"alone", "lifecycle"}
_FOUND = pytest.StashKey[Cluster | str]()
_WITHOUT = "without a cluster: "


def pytest_configure(config: pytest.Config) -> None:
    for name, meaning in _MARKERS.items():
        config.addinivalue_line("markers", f"{name}: {meaning}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = terminalreporter.stats.get("skipped", [])
    told = Counter(str(report.longrepr[2]).partition(_WITHOUT)[2] for report in skipped)
    del told[""]
    if told:
        counted = "; ".join(f"{count} x {reason}" for reason, count in told.most_common())
        terminalreporter.write_line(f"skipped without a cluster: {counted}", yellow=True)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark all that needs a cluster, or programs that are built, for `-m` to choose by."""
    for item in items:
        if _asks_for_a_cluster(item):
            item.add_marker(pytest.mark.cluster)
        if _PROGRAMS & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.programs)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Wait for the test's turn at the cluster, before its time limit begins."""
    found = item.config.stash.get(_FOUND, None)
    if not isinstance(found, Cluster) or not _asks_for_a_cluster(item):
        return (yield)
    marks = {mark.name for mark in item.iter_markers()}
    alone = bool(marks & _ALONE) or "second_node" in getattr(item, "fixturenames", ())
    with turn(turns_of(found.kubeconfig), alone=alone):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """A test that reaches for what this cluster hasn't, such as its audit log, does without."""
    try:
        yield
    except ComponentFailed:
        raise
    except ClusterUnavailable as error:
        do_without(str(error))


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, object, object]:
    """Have the cluster before the first test begins, and stop it after the last.

    Not in a fixture: the first start ever builds for minutes, which no test's time limit allows.
    """
    with ExitStack() as stack:
        asked = any(_asks_for_a_cluster(item) for item in session.items)
        if asked and not session.config.option.collectonly:
            found: Cluster | str
            try:
                found = stack.enter_context(session_cluster())
            except ClusterUnavailable as error:
                found = str(error).partition("\n")[0]
            session.config.stash[_FOUND] = found
        return (yield)


@pytest.fixture(scope="session")
def cluster(pytestconfig: pytest.Config) -> Cluster:
    """The running cluster: one that is up is used and left up, else one is started and stopped."""
    found = pytestconfig.stash.get(_FOUND, "the test has no marker that asks for one")
    if isinstance(found, str):
        do_without(found)
    return found


@pytest.fixture(autouse=True)
def _has_what_its_markers_say(request: pytest.FixtureRequest) -> None:
    if not _asks_for_a_cluster(request.node):
        return
    marks = {mark.name for mark in request.node.iter_markers()}
    found: Cluster = request.getfixturevalue("cluster")
    for since in request.node.iter_markers("since"):
        if found.version < since.args:
            needed = ".".join(map(str, since.args))
            pytest.skip(f"holds since Kubernetes {needed}")
    if "node" in marks and not found.has_node:
        do_without("this cluster has no node")
    if "registry" in marks and not found.has_registry:
        do_without("this cluster's registries aren't in our hands")


@pytest.fixture
def api(cluster: Cluster) -> Api:
    """The administrator's client, independent of the engine."""
    return Api.from_kubeconfig(cluster.kubeconfig)


@pytest.fixture
def namespace(api: Api, request: pytest.FixtureRequest) -> Iterator[str]:
    """A namespace of the test's own; its deletion goes on after the test.

    Pods that still run are killed rather than asked: a shell doesn't listen for half a minute.
    """
    words = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower()).strip("-")
    name = f"{words[:40].rstrip('-')}-{uuid.uuid4().hex[:8]}"
    api.create("namespaces", {"metadata": {"name": name, "labels": {"engine-test": "true"}}})
    api.wait(partial(_is_furnished, api, name), f"service account and root certificate in {name}")
    yield name
    with suppress(OSError):
        api.client.call("DELETE", f"/api/v1/namespaces/{name}/pods", {"gracePeriodSeconds": 0})
        api.client.call("DELETE", f"/api/v1/namespaces/{name}")


def _is_furnished(api: Api, namespace: str) -> bool:
    """Every namespace gets these; a pod that comes before them is refused, or waits."""
    account = api.find("serviceaccounts", "default", namespace)
    return account is not None and api.find("configmaps", "kube-root-ca.crt", namespace) is not None


@pytest.fixture
def images(cluster: Cluster, registry: Registry) -> Images:
    """Builds, pushes and drops images. Errors: see Images."""
    if not registry.component.alive():
        registry.start()
    return Images.of(cluster)


@pytest.fixture
def registry(cluster: Cluster) -> Iterator[Registry]:
    """The open registry; running again after the test."""
    yield from _registry(cluster.open_registry)


@pytest.fixture
def second_node(cluster: Cluster) -> Iterator[Node]:
    """A second node, there while the test runs; nothing of it is left after it."""
    if cluster.node is None:
        do_without("this cluster's nodes aren't in our hands")
    if len(cluster.nodes) > 1:
        yield cluster.nodes[1]
        return
    with lifecycle.another_node(Settings.from_environment()) as node:
        yield node


@pytest.fixture
def private_registry(cluster: Cluster) -> Iterator[Registry]:
    """The registry with a password; running again after the test."""
    yield from _registry(cluster.private_registry)


def _asks_for_a_cluster(item: pytest.Item) -> bool:
    """By a marker, or by a fixture that leads to the cluster."""
    marked = any(mark.name in _MARKERS for mark in item.iter_markers())
    return marked or "cluster" in getattr(item, "fixturenames", ())


def _registry(registry: Registry | None) -> Iterator[Registry]:
    if registry is None:
        do_without("this cluster's registries aren't in our hands")
    yield registry
    registry.start()


def do_without(reason: str) -> NoReturn:
    """Skip the test that runs, or fail it where a cluster is required."""
    if os.environ.get("ENGINE_TEST_REQUIRE_CLUSTER") == "1":
        pytest.fail(f"a cluster is required: {reason}", pytrace=False)
    pytest.skip(_WITHOUT + reason)
