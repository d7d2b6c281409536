"""The two targets of the contract: the sandbox, and a real API server where there is one."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from engine.sandbox import Sandbox
from tests.support.client import Client


@dataclass(frozen=True)
class Target:
    """One API server, and a namespace for the tests of one module."""

    name: str
    client: Client
    namespace: str

    def path(self, resource: str, name: str = "", sub: str = "") -> str:
        parts = [f"/api/v1/namespaces/{self.namespace}/{resource}", name, sub]
        return "/".join(part for part in parts if part)

    @property
    def is_real(self) -> bool:
        return self.name == "real"


@pytest.fixture(scope="session")
def sandbox_client() -> Iterator[Client]:
    with Sandbox() as sandbox:
        yield Client(sandbox.url)


@pytest.fixture(scope="module", params=["sandbox", pytest.param("real", marks=pytest.mark.cluster)])
def target(request: pytest.FixtureRequest) -> Iterator[Target]:
    if request.param == "sandbox":
        client = request.getfixturevalue("sandbox_client")
    else:
        client = Client.from_kubeconfig(kubeconfig_of(request))
    name = f"contract-{uuid.uuid4().hex[:8]}"
    made = client.post("/api/v1/namespaces", {"metadata": {"name": name}})
    assert made.code == 201, made.body
    yield Target(request.param, client, name)
    client.delete(f"/api/v1/namespaces/{name}")


@pytest.fixture
def name() -> str:
    """A name that no other test uses."""
    return f"x-{uuid.uuid4().hex[:10]}"


def kubeconfig_of(request: pytest.FixtureRequest) -> Path:
    if given := os.environ.get("ENGINE_TEST_KUBECONFIG"):
        return Path(given)
    try:
        cluster = request.getfixturevalue("cluster")
    except pytest.FixtureLookupError:
        pytest.skip("no real cluster: the plugin tests.cluster.fixtures isn't loaded")
    return Path(cluster.kubeconfig)
