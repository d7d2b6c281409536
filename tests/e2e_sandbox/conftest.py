"""The engine against the sandbox, for what a real cluster doesn't do on demand."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.sandbox import Sandbox
from tests.cluster.client import Api
from tests.e2e.harness import Engine
from tests.e2e.objects import Objects

NAMESPACE = "ci"
IMAGE = "registry.example/busybox:1"


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as running:
        running.namespace(NAMESPACE)
        yield running


@pytest.fixture
def engine(sandbox: Sandbox, tmp_path: Path) -> Iterator[Engine]:
    made = engine_on(sandbox, tmp_path)
    yield made
    made.kill_what_runs()


@pytest.fixture
def objects(engine: Engine) -> Objects:
    return Objects(Api.from_kubeconfig(engine.kubeconfig), NAMESPACE)


def engine_on(sandbox: Sandbox, folder: Path) -> Engine:
    specs = folder / "specs"
    specs.mkdir(exist_ok=True)
    kubeconfig = sandbox.write_kubeconfig(folder / "kubeconfig")
    return Engine(kubeconfig, NAMESPACE, specs, IMAGE)
