"""The cluster as tests and commands see it: its parts, where to reach it, what it can do."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from tests.cluster import control_plane, namespace, network
from tests.cluster.credentials import Credentials
from tests.cluster.errors import ClusterUnavailable
from tests.cluster.node import Node, make_node
from tests.cluster.pki import Authority
from tests.cluster.registry import Registry, open_registry, private_registry
from tests.cluster.settings import NODES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from tests.cluster.process import Component
    from tests.cluster.settings import Settings


@dataclass(frozen=True, slots=True)
class Cluster:
    """A running cluster. What it doesn't have is None.

    A cluster that was there before the tests may be without a node or registries, and none of its
    parts can be stopped.
    """

    kubeconfig: Path
    url: str
    version: tuple[int, int]
    kubectl: Path | None = None
    audit_log: Path | None = None
    components: Sequence[Component] = ()
    node: Node | None = None
    """The first node, the only one unless two were asked for."""
    nodes: Sequence[Node] = ()
    open_registry: Registry | None = None
    private_registry: Registry | None = None
    node_present: bool = False
    issue: Callable[[str, tuple[str, ...]], Path] | None = field(default=None, repr=False)

    @property
    def has_node(self) -> bool:
        return self.node_present or self.node is not None

    @property
    def has_registry(self) -> bool:
        return self.open_registry is not None

    @property
    def apiserver(self) -> Component:
        return self.component("kube-apiserver")

    def component(self, name: str) -> Component:
        """Errors: ClusterUnavailable where the cluster's parts aren't in our hands."""
        for component in self.components:
            if component.name == name:
                return component
        raise ClusterUnavailable(f"{name} of this cluster can't be controlled")

    def audit_position(self) -> int:
        """Where the audit log ends now, to read from later."""
        return self.audit_log.stat().st_size if self.audit_log else 0

    def audit_entries(self, user_agent: str, since: int = 0) -> list[dict[str, Any]]:
        """The requests of those whose user agent begins so, in the order of their answers.

        An entry may follow its answer by a moment, so wait for the last one that is expected.
        Errors: ClusterUnavailable where the API server isn't ours.
        """
        if self.audit_log is None:
            raise ClusterUnavailable("this cluster's audit log can't be read")
        with self.audit_log.open() as lines:
            lines.seek(since)
            entries = [json.loads(line) for line in lines if line.endswith("\n")]
        return [one for one in entries if one.get("userAgent", "").startswith(user_agent)]

    def kubeconfig_for(self, user: str, groups: tuple[str, ...] = ()) -> Path:
        """A kubeconfig for a user that RBAC knows nothing of.

        Errors: ClusterUnavailable where no certificate can be issued.
        """
        if self.issue is None:
            raise ClusterUnavailable("this cluster's certificate authority isn't ours")
        return self.issue(user, groups)


@dataclass(frozen=True, slots=True)
class Parts:
    """Every component of our own cluster, in the order in which they start."""

    settings: Settings
    keeper: Component
    registries: tuple[Registry, Registry]
    etcd: Component
    apiserver: Component
    controller_manager: Component
    scheduler: Component
    in_cluster_address: Component
    nodes: tuple[Node, ...]
    credentials: Credentials
    programs: namespace.Programs

    @property
    def components(self) -> tuple[Component, ...]:
        registries = tuple(registry.component for registry in self.registries)
        plane = (self.etcd, self.apiserver, self.controller_manager, self.scheduler)
        nodes = (part for node in self.nodes for part in (node.containerd, node.kubelet))
        return (self.keeper, *registries, *plane, self.in_cluster_address, *nodes)

    def cluster(self, version: tuple[int, int]) -> Cluster:
        return Cluster(
            kubeconfig=self.settings.kubeconfig,
            url=self.settings.url,
            version=version,
            kubectl=self.programs.outside["kubernetes"] / "kubectl",
            audit_log=self.settings.audit_log,
            components=self.components,
            node=self.nodes[0],
            nodes=self.nodes,
            open_registry=self.registries[0],
            private_registry=self.registries[1],
            issue=self.credentials.kubeconfig_for,
        )


def credentials_of(settings: Settings) -> Credentials:
    address = str(network.api_service(settings))
    return Credentials(Authority(settings.pki), settings.url, settings.kubeconfig, address)


def parts_of(settings: Settings, built: Mapping[str, Path], nodes: int = 1) -> Parts:
    """Describe the components; writes their configuration files, starts nothing.

    Assumptions: the certificate authority has been created.
    """
    credentials = credentials_of(settings)
    programs = namespace.programs(settings, built)
    kubernetes = partial(programs.path, "kubernetes")
    keeper = namespace.keeper(settings, programs)
    inside = partial(namespace.entering, keeper)
    registries = (open_registry(settings, inside), private_registry(settings, inside))
    pause = pause_image(registries[0])
    return Parts(
        settings=settings,
        keeper=keeper,
        registries=registries,
        etcd=control_plane.etcd(settings, programs.path("etcd", "etcd"), inside),
        apiserver=control_plane.apiserver(
            settings, kubernetes("kube-apiserver"), credentials, inside
        ),
        controller_manager=control_plane.controller_manager(
            settings, kubernetes("kube-controller-manager"), credentials, inside
        ),
        scheduler=control_plane.scheduler(
            settings, kubernetes("kube-scheduler"), credentials, inside
        ),
        in_cluster_address=control_plane.in_cluster_address(settings, inside),
        nodes=tuple(
            make_node(settings, name, programs, pause, credentials, inside)
            for name in NODES[:nodes]
        ),
        credentials=credentials,
        programs=programs,
    )


def pause_image(registry: Registry) -> str:
    return f"{registry.host}/pause:1"
