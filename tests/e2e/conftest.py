"""The engine against the real cluster."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.client import Api
from tests.cluster.cluster import Cluster
from tests.cluster.images import Images
from tests.e2e.harness import Engine
from tests.e2e.objects import Objects


@pytest.fixture
def engine(cluster: Cluster, namespace: str, images: Images, tmp_path: Path) -> Iterator[Engine]:
    folder = tmp_path / "specs"
    folder.mkdir()
    made = Engine(cluster.kubeconfig, namespace, folder, images.busybox)
    yield made
    made.kill_what_runs()


@pytest.fixture
def objects(api: Api, namespace: str) -> Objects:
    return Objects(api, namespace)
