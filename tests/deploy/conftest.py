"""The engine's image in the cluster's registry, and a namespace that lets in what is restricted."""

import pytest

from engine import __version__
from tests.cluster import oci
from tests.cluster.engine_image import engine_image
from tests.cluster.images import Images
from tests.support.api import Api

RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}


@pytest.fixture
def repository(images: Images) -> str:
    """Where the image is, without its tag, which is our version."""
    repository = f"{images.open.host}/engine"
    oci.push(engine_image(), f"{repository}:{__version__}", images.open.account)
    return repository


@pytest.fixture
def restricted(api: Api, namespace: str) -> str:
    """The test's namespace, in which admission enforces `restricted`."""
    api.patch("namespaces", namespace, {"metadata": {"labels": RESTRICTED}})
    return namespace
