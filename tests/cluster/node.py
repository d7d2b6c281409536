"""containerd and kubelet: a node on which pods really run."""

from __future__ import annotations

import json
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.cluster import network
from tests.cluster.cgroups import node_cgroup
from tests.cluster.control_plane import Inside, answers, component
from tests.cluster.files import write
from tests.cluster.settings import NODES, Settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.cluster.credentials import Credentials
    from tests.cluster.namespace import Programs
    from tests.cluster.process import Component

_CONTAINERD = """\
version = 3
root = "{root}"
state = "{state}"
[grpc]
  address = "{socket}"
[plugins."io.containerd.cri.v1.images"]
  snapshotter = "{snapshotter}"
  max_concurrent_downloads = 10
  stats_collect_period = 60
  [plugins."io.containerd.cri.v1.images".pinned_images]
    sandbox = "{pause}"
[plugins."io.containerd.cri.v1.runtime"]
  restrict_oom_score_adj = true
  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = ["/usr/lib/cni"]
    conf_dir = "{cni}"
  [plugins."io.containerd.cri.v1.runtime".containerd]
    default_runtime_name = "runc"
    [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      runtime_path = "{shim}"
      [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
        BinaryName = "{runc}"
        Root = "{runc_root}"
"""
"""`restrict_oom_score_adj`: without CAP_SYS_RESOURCE runc can't lower the score and dies."""


@dataclass(frozen=True, slots=True)
class Node:
    """A kubelet and its container runtime, with folders, ports and a cgroup of their own."""

    name: str
    containerd: Component
    kubelet: Component
    socket: Path
    client: Path
    """The program `ctr`."""

    def ctr(self, *arguments: str) -> Sequence[str]:
        """A command line for containerd's own client, in the kubelet's image store."""
        return [str(self.client), f"--address={self.socket}", "--namespace=k8s.io", *arguments]


def make_node(
    settings: Settings,
    name: str,
    programs: Programs,
    pause: str,
    credentials: Credentials,
    inside: Inside,
) -> Node:
    """Writes the configuration of both; starts nothing."""
    return Node(
        name,
        _containerd(settings, name, programs, pause, inside),
        _kubelet(settings, name, programs, credentials, inside),
        containerd_socket(settings, name),
        programs.outside["containerd"] / "ctr",
    )


def containerd_socket(settings: Settings, name: str) -> Path:
    return _folder(settings, name) / "containerd.sock"


def _folder(settings: Settings, name: str) -> Path:
    return settings.data / name


def _containerd(
    settings: Settings, name: str, programs: Programs, pause: str, inside: Inside
) -> Component:
    folder, socket_path = _folder(settings, name), containerd_socket(settings, name)
    config = settings.state / f"{name}-containerd.toml"
    networks = settings.state / "cni"
    network.write_config(settings, networks)
    write(
        config,
        _CONTAINERD.format(
            root=folder / "containerd",
            state=folder / "containerd-state",
            socket=socket_path,
            pause=pause,
            cni=networks,
            snapshotter=_snapshotter(settings.state),
            shim=programs.path("containerd", "containerd-shim-runc-v2"),
            runc="/usr/sbin/runc",
            runc_root=folder / "runc",
        ),
    )

    argv = [str(programs.path("containerd", "containerd")), f"--config={config}"]

    def ready() -> bool:
        with socket.socket(socket.AF_UNIX) as probe:
            probe.connect(str(socket_path))
        return has_booted(made.log.read_text(errors="replace"))

    made = component(settings, f"{name}-containerd", argv, ready, inside)
    return made


def has_booted(log: str) -> bool:
    """Whether the last of the lives that containerd's log tells of serves the kubelet.

    Its socket is open before that, and a kubelet that comes too early ends; it says that it has
    booted once every plugin is ready (cmd/containerd/command/main.go of containerd 2).
    """
    return log.rfind("containerd successfully booted") > log.rfind('msg="starting containerd"')


def _kubelet(
    settings: Settings, name: str, programs: Programs, credentials: Credentials, inside: Inside
) -> Component:
    """Quick to notice and to report, because tests wait for it; it touches no iptables rule."""
    folder = _folder(settings, name)
    config = settings.state / f"{name}-kubelet.json"
    health_port = _ports(settings, name)[1]
    write(config, json.dumps(_kubelet_config(settings, name, credentials), indent=2))
    user, groups = f"system:node:{name}", ("system:nodes",)
    argv = [
        str(programs.path("kubernetes", "kubelet")),
        f"--config={config}",
        f"--kubeconfig={credentials.kubeconfig_for(user, groups)}",
        f"--root-dir={folder / 'kubelet'}",
        f"--cert-dir={folder / 'kubelet-pki'}",
        f"--hostname-override={name}",
        f"--runtime-cgroups=/{node_cgroup(settings, name)}",
        f"--kubelet-cgroups=/{node_cgroup(settings, name)}",
    ]
    url = f"http://127.0.0.1:{health_port}/healthz"
    return component(settings, f"{name}-kubelet", argv, lambda: answers(url), inside)


def _ports(settings: Settings, name: str) -> tuple[int, int]:
    ports = settings.ports
    if name == NODES[0]:
        return ports.kubelet_1, ports.kubelet_healthz_1
    return ports.kubelet_2, ports.kubelet_healthz_2


def _kubelet_config(settings: Settings, name: str, credentials: Credentials) -> dict[str, object]:
    port, health_port = _ports(settings, name)
    folder = _folder(settings, name)
    authority = str(credentials.authority.pair.certificate)
    since_1_31 = {"failCgroupV1": False} if settings.release != "1.30" else {}
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": "127.0.0.1",
        "port": port,
        "healthzBindAddress": "127.0.0.1",
        "healthzPort": health_port,
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": False},
            "x509": {"clientCAFile": authority},
        },
        "authorization": {"mode": "AlwaysAllow"},
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{node_cgroup(settings, name)}",
        "containerRuntimeEndpoint": f"unix://{containerd_socket(settings, name)}",
        "enforceNodeAllocatable": [],
        "evictionHard": {"memory.available": "50Mi"},
        "failSwapOn": False,
        "imageGCHighThresholdPercent": 100,
        "makeIPTablesUtilChains": False,
        "clusterDNS": [str(network.services(settings)[10])],
        "clusterDomain": "cluster.local",
        "maxPods": 500,
        "oomScoreAdj": 0,
        "podLogsDir": str(folder / "pod-logs"),
        "registryPullQPS": 0,
        "eventRecordQPS": 0,
        "kubeAPIQPS": 500,
        "kubeAPIBurst": 1000,
        "serializeImagePulls": False,
        "syncFrequency": "10s",
        "nodeStatusUpdateFrequency": "1s",
        "nodeStatusReportFrequency": "1m",
        "volumePluginDir": str(folder / "volume-plugins"),
        "volumeStatsAggPeriod": "10m",
        **since_1_31,
    }


def _snapshotter(folder: Path) -> str:
    """An overlay can't be stacked on the overlay that a container's own root is."""
    best = ("", "")
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, point, kind, *_ = line.split()
        if folder.is_relative_to(point) and len(point) >= len(best[0]):
            best = (point, kind)
    return "native" if best[1] == "overlay" else "overlayfs"
