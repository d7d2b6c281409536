"""Where the cluster keeps its files and which ports it takes: one value that everything gets."""

from __future__ import annotations

import os
import zlib
from dataclasses import dataclass
from pathlib import Path

NODES = ("node-1", "node-2")
"""The second one is there only where somebody asks for it."""

CURRENT = "1.36"
"""The release under the tests; `modules/kubernetes-RELEASE` says which version of it."""


@dataclass(frozen=True, slots=True)
class Ports:
    """Loopback ports below the ephemeral range.

    No outgoing connection can take one of them while its server is stopped by a test.
    """

    etcd: int
    etcd_peer: int
    apiserver: int
    controller_manager: int
    scheduler: int
    open_registry: int
    private_registry: int
    kubelet_1: int
    kubelet_healthz_1: int
    kubelet_2: int
    kubelet_healthz_2: int

    @classmethod
    def starting_at(cls, first: int) -> Ports:
        return cls(*range(first, first + 11))


@dataclass(frozen=True, slots=True)
class Settings:
    """`cache` survives reboots and holds what is costly to make; `state` is one run's files.

    `state` is short and below /run because socket paths are limited to 107 bytes.
    """

    cache: Path
    state: Path
    release: str = CURRENT

    @classmethod
    def from_environment(cls) -> Settings:
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        cache = Path(os.environ.get("ENGINE_TEST_CACHE") or home / "engine-test-cluster")
        state = Path(os.environ.get("ENGINE_TEST_STATE") or "/run/engine-test-cluster")
        release = os.environ.get("ENGINE_TEST_RELEASE") or CURRENT
        return cls(cache.absolute(), state.absolute(), release)

    @property
    def id(self) -> str:
        """Tells clusters on one machine apart: in cgroup, network and interface names."""
        return f"{zlib.crc32(str(self.state).encode()):08x}"

    @property
    def ports(self) -> Ports:
        return Ports.starting_at(20000 + zlib.crc32(str(self.state).encode()) % 600 * 20)

    @property
    def lock(self) -> Path:
        return self.state / "up.lock"

    @property
    def logs(self) -> Path:
        return self.state / "logs"

    @property
    def records(self) -> Path:
        return self.state / "processes"

    @property
    def pki(self) -> Path:
        return self.state / "pki"

    @property
    def data(self) -> Path:
        """What the components write; removed with the cluster, unlike the logs."""
        return self.state / "data"

    @property
    def kubeconfig(self) -> Path:
        return self.state / "kubeconfig"

    @property
    def audit_log(self) -> Path:
        return self.logs / "audit.log"

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.ports.apiserver}"
