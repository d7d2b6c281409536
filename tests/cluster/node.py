"""containerd and kubelet: the node on which pods really run."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import TYPE_CHECKING

from tests.cluster import network
from tests.cluster.cgroups import cgroup_name
from tests.cluster.control_plane import Inside, answers, component
from tests.cluster.files import write
from tests.cluster.settings import NODE, Settings

if TYPE_CHECKING:
    from tests.cluster.credentials import Credentials
    from tests.cluster.process import Component

_CONTAINERD = """\
version = 2
root = "{root}"
state = "{state}"
[grpc]
  address = "{socket}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  restrict_oom_score_adj = true
  max_concurrent_downloads = 10
  stats_collect_period = 60
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{cni}"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "{snapshotter}"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        BinaryName = "{runc}"
        Root = "{runc_root}"
"""
"""`restrict_oom_score_adj`: without CAP_SYS_RESOURCE runc can't lower the score and dies."""


def containerd_socket(settings: Settings) -> Path:
    return settings.data / "containerd.sock"


def containerd(settings: Settings, pause: str, inside: Inside) -> Component:
    config = settings.state / "containerd.toml"
    networks = settings.state / "cni"
    network.write_config(settings, networks)
    write(
        config,
        _CONTAINERD.format(
            root=settings.data / "containerd",
            state=settings.data / "containerd-state",
            socket=containerd_socket(settings),
            pause=pause,
            cni=networks,
            snapshotter=_snapshotter(settings.state),
            runc="/usr/sbin/runc",
            runc_root=settings.data / "runc",
        ),
    )

    def ready() -> bool:
        with socket.socket(socket.AF_UNIX) as probe:
            probe.connect(str(containerd_socket(settings)))
        return True

    return component(settings, "containerd", ["containerd", f"--config={config}"], ready, inside)


def kubelet(
    settings: Settings, program: Path, credentials: Credentials, inside: Inside
) -> Component:
    """Quick to notice and to report, because tests wait for it; it touches no iptables rule."""
    ports = settings.ports
    config = settings.state / "kubelet.json"
    write(config, json.dumps(_kubelet_config(settings, credentials), indent=2))
    user, groups = f"system:node:{NODE}", ("system:nodes",)
    argv = [
        str(program),
        f"--config={config}",
        f"--kubeconfig={credentials.kubeconfig_for(user, groups)}",
        f"--root-dir={settings.data / 'kubelet'}",
        f"--cert-dir={settings.data / 'kubelet-pki'}",
        f"--hostname-override={NODE}",
        "--container-runtime=remote",
        f"--container-runtime-endpoint=unix://{containerd_socket(settings)}",
        f"--runtime-cgroups=/{cgroup_name(settings)}",
        f"--kubelet-cgroups=/{cgroup_name(settings)}",
    ]
    url = f"http://127.0.0.1:{ports.kubelet_healthz}/healthz"
    return component(settings, "kubelet", argv, lambda: answers(url), inside)


def _kubelet_config(settings: Settings, credentials: Credentials) -> dict[str, object]:
    ports = settings.ports
    authority = str(credentials.authority.pair.certificate)
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": "127.0.0.1",
        "port": ports.kubelet,
        "healthzBindAddress": "127.0.0.1",
        "healthzPort": ports.kubelet_healthz,
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": False},
            "x509": {"clientCAFile": authority},
        },
        "authorization": {"mode": "AlwaysAllow"},
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{cgroup_name(settings)}",
        "enforceNodeAllocatable": [],
        "evictionHard": {"memory.available": "50Mi"},
        "failSwapOn": False,
        "imageGCHighThresholdPercent": 100,
        "makeIPTablesUtilChains": False,
        "clusterDNS": ["10.97.0.10"],
        "clusterDomain": "cluster.local",
        "maxPods": 500,
        "oomScoreAdj": 0,
        "registryPullQPS": 0,
        "eventRecordQPS": 0,
        "kubeAPIQPS": 500,
        "kubeAPIBurst": 1000,
        "serializeImagePulls": False,
        "syncFrequency": "10s",
        "nodeStatusUpdateFrequency": "1s",
        "nodeStatusReportFrequency": "1m",
        "volumePluginDir": str(settings.data / "volume-plugins"),
        "volumeStatsAggPeriod": "10m",
    }


def _snapshotter(folder: Path) -> str:
    """An overlay can't be stacked on the overlay that a container's own root is."""
    best = ("", "")
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, point, kind, *_ = line.split()
        if folder.is_relative_to(point) and len(point) >= len(best[0]):
            best = (point, kind)
    return "native" if best[1] == "overlay" else "overlayfs"
