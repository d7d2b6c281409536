"""Campaigns: the engine is killed, the API server restarted, and every job runs exactly once."""

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.images import Images
from tests.e2e.conftest import engine, objects
from tests.support.clusters import RealCluster

__all__ = ["engine", "objects", "target"]


@pytest.fixture
def target(cluster: Cluster, namespace: str, images: Images) -> RealCluster:
    return RealCluster(cluster, namespace, images)
