"""Clusters that are there already: any by its kubeconfig, or an API server from a folder."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.cluster import control_plane
from tests.cluster.cluster import Cluster, credentials_of
from tests.cluster.errors import ClusterUnavailable
from tests.cluster.settings import Settings
from tests.support.api import Api, ApiError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cluster.process import Component


def attach(kubeconfig: Path) -> Cluster:
    """A cluster somebody else runs: used, never stopped.

    Errors: ClusterUnavailable when it doesn't answer as the API server of a cluster.
    """
    api = Api.from_kubeconfig(kubeconfig)
    try:
        version = api.client.call("GET", "/version").body
        nodes = api.list("nodes")
    except (OSError, ApiError) as error:
        raise ClusterUnavailable(f"the cluster of {kubeconfig} doesn't answer: {error}") from None
    ready = any(
        condition["type"] == "Ready" and condition["status"] == "True"
        for found in nodes
        for condition in found.get("status", {}).get("conditions", [])
    )
    kubectl = shutil.which("kubectl")
    return Cluster(
        kubeconfig=kubeconfig,
        url=api.client.url,
        version=control_plane.version_of(version),
        kubectl=Path(kubectl) if kubectl else None,
        node_present=ready,
    )


@contextmanager
def from_assets(folder: Path) -> Iterator[Cluster]:
    """The API server and etcd of a folder such as setup-envtest makes; no node, no controllers.

    Errors: ClusterUnavailable when a program is missing, ComponentFailed when one doesn't start.
    """
    for name in ("etcd", "kube-apiserver"):
        if not (folder / name).exists():
            raise ClusterUnavailable(f"KUBEBUILDER_ASSETS has no {name}: {folder}")
    with tempfile.TemporaryDirectory(prefix="engine-test-") as state:
        settings = Settings(cache=folder, state=Path(state))
        for needed in (settings.logs, settings.records, settings.data):
            needed.mkdir(parents=True)
        credentials = credentials_of(settings)
        credentials.create()
        parts: list[Component] = [
            control_plane.etcd(settings, folder / "etcd"),
            control_plane.apiserver(settings, folder / "kube-apiserver", credentials),
        ]
        try:
            for part in parts:
                part.start()
            api = Api.from_kubeconfig(settings.kubeconfig)
            kubectl = folder / "kubectl"
            yield Cluster(
                kubeconfig=settings.kubeconfig,
                url=settings.url,
                version=control_plane.version_of(api.client.call("GET", "/version").body),
                kubectl=kubectl if kubectl.exists() else None,
                audit_log=settings.audit_log,
                components=parts,
                issue=credentials.kubeconfig_for,
            )
        finally:
            for part in reversed(parts):
                part.stop()
