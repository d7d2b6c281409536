"""A simulated cluster whose clock can be moved, and the command line in this process."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.sandbox import Sandbox
from tests.support.api import Api
from tests.support.clusters import NAMESPACE, SandboxCluster
from tests.support.in_process_engine import InProcessEngine
from tests.support.objects import Objects


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as running:
        yield running


@pytest.fixture
def engine(sandbox: Sandbox, tmp_path: Path) -> InProcessEngine:
    target = SandboxCluster(sandbox, tmp_path)
    folder = tmp_path / "specs"
    folder.mkdir()
    return InProcessEngine(target.kubeconfig, NAMESPACE, folder, target.image)


@pytest.fixture
def objects(engine: InProcessEngine) -> Objects:
    return Objects(Api.from_kubeconfig(engine.kubeconfig), NAMESPACE)
