"""The engine against the real cluster."""

from pathlib import Path

import pytest

from tests.cluster.client import Api, Object
from tests.cluster.cluster import Cluster
from tests.cluster.images import Images
from tests.e2e.harness import Engine


@pytest.fixture
def engine(cluster: Cluster, namespace: str, images: Images, tmp_path: Path) -> Engine:
    folder = tmp_path / "specs"
    folder.mkdir()
    return Engine(cluster.kubeconfig, namespace, folder, images.busybox)


@pytest.fixture
def objects(api: Api, namespace: str) -> "Objects":
    return Objects(api, namespace)


class Objects:
    """What the test's namespace holds, read from the API."""

    def __init__(self, api: Api, namespace: str) -> None:
        self.api = api
        self.namespace = namespace

    def pods(self) -> list[Object]:
        return self.api.list("pods", self.namespace)

    def pod(self, job: str) -> Object:
        """The one pod of a job."""
        (pod,) = self.api.list("pods", self.namespace, labels=f"jobs.engine/job={job}")
        return pod

    def owned(self) -> list[str]:
        """kind/name of the engine's own Secrets and ConfigMaps, without records."""
        labels = "app.kubernetes.io/managed-by=engine,jobs.engine/component!=record"
        return [
            f"{kind}/{item['metadata']['name']}"
            for kind in ("secrets", "configmaps")
            for item in self.api.list(kind, self.namespace, labels=labels)
        ]

    def log(self, job: str, container: str = "main") -> str:
        return self.api.logs(self.namespace, self.pod(job)["metadata"]["name"], container)

    def wait_until_running(self, job: str) -> Object:
        def running() -> Object | None:
            found = self.api.list("pods", self.namespace, labels=f"jobs.engine/job={job}")
            return next((p for p in found if p["status"]["phase"] == "Running"), None)

        return self.api.wait(running, f"running pod of {job}")
