"""Campaigns: the engine is killed, the API server restarted, and every job runs exactly once."""

from collections.abc import Iterator

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.images import Images
from tests.cluster.process import Component
from tests.e2e.conftest import engine, objects
from tests.support.clusters import RealCluster

__all__ = ["engine", "objects", "target"]


@pytest.fixture
def target(cluster: Cluster, namespace: str, images: Images) -> RealCluster:
    return RealCluster(cluster, namespace, images)


@pytest.fixture
def apiserver(cluster: Cluster) -> Iterator[Component]:
    """The API server, to be killed: it runs again after the test, however that ends."""
    yield cluster.apiserver
    cluster.apiserver.start()
