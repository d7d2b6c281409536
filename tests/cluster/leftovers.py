"""What a cluster may leave on the machine, found by its own names and taken away."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from tests.cluster import cgroups, network
from tests.cluster.files import write
from tests.cluster.node import containerd_socket
from tests.cluster.process import Identity, end
from tests.cluster.settings import NODES

if TYPE_CHECKING:
    from tests.cluster.node import Node
    from tests.cluster.settings import Settings

_SYSCTLS = (
    "net/ipv4/ip_forward",
    "vm/overcommit_memory",
    "vm/panic_on_oom",
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/keys/root_maxkeys",
    "kernel/keys/root_maxbytes",
)
"""Kernel settings the kubelet and the network plugin change."""


def remember_sysctls(settings: Settings) -> None:
    """Kept once: a second call must not take the changed values for the machine's own."""
    path = settings.state / "sysctls.json"
    if path.exists():
        return
    files = {name: Path("/proc/sys") / name for name in _SYSCTLS}
    values = {name: file.read_text().strip() for name, file in files.items() if file.exists()}
    write(path, json.dumps(values))


def clear(settings: Settings) -> list[str]:
    """End what runs, take away what stays, keep the logs; returns what couldn't be removed.

    Guarantees: only processes of this cluster are signalled — those it recorded, those in its
    cgroup, and the shims of its containerd. Works from any half-way state and may be repeated.
    """
    recorded = _recorded(settings)
    end(recorded, patience=2.0)
    end([*cgroups.processes(settings), *_shims(settings)], patience=0.0)
    cgroups.remove(settings)
    network.remove(settings)
    _restore_sysctls(settings)
    for name in settings.state.iterdir() if settings.state.exists() else ():
        if name == settings.logs or name.name.endswith(".lock"):
            continue
        shutil.rmtree(name) if name.is_dir() else name.unlink(missing_ok=True)
    return remaining(settings)


def clear_node(settings: Settings, node: Node) -> None:
    """End one node and everything that runs on it, and leave the others alone."""
    for part in (node.kubelet, node.containerd):
        part.stop()
    end([*cgroups.processes(settings, node.name), *_shims(settings, node.name)], patience=0.0)
    for part in (node.kubelet, node.containerd):
        part.record.unlink(missing_ok=True)


def remaining(settings: Settings) -> list[str]:
    """Every trace of this cluster on the machine, but its logs."""
    processes = [*_recorded(settings), *_shims(settings), *cgroups.processes(settings)]
    found = [f"process {identity.pid}" for identity in processes if identity.alive()]
    found += [f"mount {point}" for point in _mounts(settings)]
    found += [f"cgroup {name}" for name in cgroups.leftovers(settings)]
    found += [f"interface {name}" for name in network.interfaces(settings)]
    if network.has_api_service(settings):
        found.append(f"address {network.api_service(settings)}")
    return found


def _recorded(settings: Settings) -> list[Identity]:
    records = sorted(settings.records.iterdir()) if settings.records.exists() else []
    return [identity for record in records if (identity := Identity.read(record))]


def _shims(settings: Settings, *nodes: str) -> list[Identity]:
    """A shim survives its containerd; its command line names the socket it belongs to."""
    addresses = {str(containerd_socket(settings, name)).encode() for name in nodes or NODES}
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            arguments = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"containerd-shim" in arguments[0] and addresses & set(arguments):
            found.append(Identity.of(int(folder.name)))
    return [identity for identity in found if identity is not None]


def _mounts(settings: Settings) -> list[str]:
    points = (line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines())
    inside = {point for point in points if Path(point).is_relative_to(settings.data)}
    return sorted(inside, key=len, reverse=True)


def _restore_sysctls(settings: Settings) -> None:
    path = settings.state / "sysctls.json"
    try:
        values = json.loads(path.read_text())
    except (OSError, ValueError):
        return
    for name, value in values.items():
        file = Path("/proc/sys") / name
        if os.access(file, os.W_OK) and file.read_text().strip() != value:
            file.write_text(value)
