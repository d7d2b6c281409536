"""The cgroup of one cluster's containers, by which all their processes are found at the end."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from tests.cluster.errors import ClusterUnavailable
from tests.cluster.process import Identity
from tests.cluster.settings import NODES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cluster.settings import Settings

ROOT = Path("/sys/fs/cgroup")


def cgroup_name(settings: Settings) -> str:
    return f"engine-test-{settings.id}"


def node_cgroup(settings: Settings, node: str) -> str:
    """The root below which one node's kubelet and containers are."""
    return f"{cgroup_name(settings)}/{node}"


def create(settings: Settings) -> None:
    """Errors: ClusterUnavailable where the machine doesn't let its cgroups be written."""
    try:
        for whole in _folders(settings):
            for folder in (whole, *(whole / node for node in NODES)):
                folder.mkdir(exist_ok=True)
                _inherit_cpuset(folder)
    except OSError as error:
        raise ClusterUnavailable(f"cgroups can't be written here: {error}") from None


def processes(settings: Settings, node: str = "") -> list[Identity]:
    """Every process in a container of this cluster, or of one of its nodes."""
    folders = (folder / node for folder in _folders(settings))
    found = (Identity.of(pid) for folder in folders for pid in _members(folder))
    return list({identity for identity in found if identity is not None})


def remove(settings: Settings) -> None:
    """A group goes once its last process is reaped, which may be a moment after its death."""
    deadline = time.monotonic() + 5
    while remaining := [folder for folder in _folders(settings) if folder.exists()]:
        for folder in remaining:
            for group in [*_below(folder), folder]:
                try:
                    group.rmdir()
                except OSError:
                    continue
        if time.monotonic() > deadline:
            break
        time.sleep(0.01)


def leftovers(settings: Settings) -> list[str]:
    return [str(folder) for folder in _folders(settings) if folder.exists()]


def _folders(settings: Settings) -> list[Path]:
    """One where all controllers share a hierarchy (v2); else one in each (v1, hybrid)."""
    if (ROOT / "cgroup.controllers").exists():
        return [ROOT / cgroup_name(settings)]
    hierarchies = {child.resolve() for child in ROOT.iterdir() if (child / "cgroup.procs").exists()}
    return sorted(folder / cgroup_name(settings) for folder in hierarchies)


def _inherit_cpuset(folder: Path) -> None:
    """A new cpuset group (v1) has no processor, and nothing can run in it until it has."""
    for name in ("cpuset.cpus", "cpuset.mems"):
        own, parents = folder / name, folder.parent / name
        if own.exists() and parents.exists() and not own.read_text().strip():
            own.write_text(parents.read_text())


def _below(folder: Path) -> Iterator[Path]:
    """Deepest first."""
    for child in folder.iterdir() if folder.exists() else ():
        if child.is_dir():
            yield from _below(child)
            yield child


def _members(folder: Path) -> Iterator[int]:
    for group in [*_below(folder), folder]:
        try:
            yield from map(int, (group / "cgroup.procs").read_text().split())
        except OSError:
            continue
