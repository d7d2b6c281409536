"""The engine's image in the cluster's registry, restricted namespaces, a release of the chart."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from engine import __version__
from tests.cluster import oci
from tests.cluster.cluster import Cluster
from tests.cluster.engine_image import engine_image
from tests.cluster.errors import ClusterUnavailable
from tests.cluster.fixtures import do_without
from tests.cluster.helm import Helm
from tests.cluster.images import Images
from tests.cluster.prometheus import Prometheus
from tests.deploy.release import Release
from tests.support.api import Api
from tests.support.engine import Engine

RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}


@pytest.fixture
def repository(images: Images) -> str:
    """Where the image is, without its tag, which is our version.

    Each content has a place of its own: a node keeps what it once pulled by a name.
    """
    image = engine_image()
    content = oci.digest(image.manifest).removeprefix("sha256:")[:8]
    repository = f"{images.open.host}/engine-{content}"
    oci.push(image, f"{repository}:{__version__}", images.open.account)
    return repository


@pytest.fixture
def restricted(api: Api, namespace: str) -> str:
    """The test's namespace, in which admission enforces `restricted`."""
    api.patch("namespaces", namespace, {"metadata": {"labels": RESTRICTED}})
    return namespace


@pytest.fixture
def release(helm: Helm, cluster: Cluster, tmp_path: Path, restricted: str) -> Release:
    return Release(helm, cluster, tmp_path, restricted)


@pytest.fixture
def engine(cluster: Cluster, tmp_path: Path, images: Images, namespace: str) -> Engine:
    """Somebody's command line, who looks from outside."""
    return Engine(cluster.kubeconfig, namespace, tmp_path, images.busybox)


@pytest.fixture
def jobs(api: Api, namespace: str) -> Iterator[str]:
    """A name for a namespace that the chart will make."""
    name = f"jobs-{namespace[-8:]}"
    yield name
    with suppress(OSError):
        api.client.call("DELETE", f"/api/v1/namespaces/{name}/pods", {"gracePeriodSeconds": 0})
        api.client.call("DELETE", f"/api/v1/namespaces/{name}")


@pytest.fixture(scope="session")
def prometheus() -> Prometheus:
    """The real one. Skips where it can't be had."""
    try:
        return Prometheus.find()
    except ClusterUnavailable as error:
        do_without(str(error))
