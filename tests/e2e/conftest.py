"""One suite for the sandbox and for a real cluster.

`only("real")` and `only("sandbox")` name the one that can show a test. Of the others the sandbox
shows each in `make test`; the real cluster shows those marked `real` in `make test-cluster`, and
the rest in `make soak`. `real("one")` is of the parameters whose id ends so.
"""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from engine.sandbox import Clock, Sandbox
from tests.cluster.quota import set_quota
from tests.support.api import Api, Object
from tests.support.clusters import ClusterUnderTest, RealCluster, SandboxCluster, engine_for
from tests.support.engine import Engine
from tests.support.objects import Objects
from tests.support.second_node import RealSecondNode, SecondNode, SimulatedSecondNode

SPEED = 3.0
"""How much faster than the machine's the sandbox's clock runs; the engine waits in real time."""
Quota = Callable[..., Object]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Show a test on both, or on the one that `only` names."""
    if "target" in metafunc.fixturenames:
        only = metafunc.definition.get_closest_marker("only")
        names = only.args if only else ("real", "sandbox")
        marks = [pytest.mark.node]
        marks.append(
            pytest.mark.alone if "other_node" in metafunc.fixturenames else pytest.mark.registry
        )
        if not only and not metafunc.definition.get_closest_marker("real"):
            marks.append(pytest.mark.soak)
        targets = {"real": pytest.param("real", marks=marks), "sandbox": "sandbox"}
        metafunc.parametrize("target", [targets[name] for name in names], indirect=True)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave parameters that `real` doesn't name to `make soak`."""
    for item in items:
        real = item.get_closest_marker("real")
        if not (real and real.args and isinstance(item, pytest.Function)):
            continue
        ids = item.callspec.id
        if item.callspec.params.get("target") == "real" and not ids.endswith(real.args):
            item.add_marker(pytest.mark.soak)


@pytest.fixture
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ClusterUnderTest]:
    if request.param == "real":
        yield RealCluster(
            request.getfixturevalue("cluster"),
            request.getfixturevalue("namespace"),
            request.getfixturevalue("images"),
        )
    else:
        marked = request.node.get_closest_marker("clock")
        with Sandbox(clock=Clock(speed=marked.args[0] if marked else SPEED)) as sandbox:
            yield SandboxCluster(sandbox, tmp_path)


@pytest.fixture
def sandbox(target: ClusterUnderTest) -> Sandbox:
    """The one under a test of the sandbox alone."""
    assert isinstance(target, SandboxCluster)
    return target.sandbox


@pytest.fixture
def other_node(target: ClusterUnderTest, request: pytest.FixtureRequest) -> SecondNode:
    """One more node, which the test may lose."""
    if isinstance(target, SandboxCluster):
        return SimulatedSecondNode(target.sandbox.add_node("sandbox-node-2"))
    node = request.getfixturevalue("second_node")
    return RealSecondNode(node, Api.from_kubeconfig(target.kubeconfig))


@pytest.fixture
def engine(target: ClusterUnderTest, tmp_path: Path) -> Iterator[Engine]:
    made = engine_for(target, tmp_path)
    yield made
    made.kill_what_runs()


@pytest.fixture
def objects(target: ClusterUnderTest) -> Objects:
    return Objects(Api.from_kubeconfig(target.kubeconfig), target.namespace)


@pytest.fixture
def limit(objects: Objects) -> Quota:
    """`limit({"pods": "0"}, scopes=None, name="q")`: a quota in force in the test's namespace."""
    return partial(set_quota, objects.api, objects.namespace)
