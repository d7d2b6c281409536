"""The private mount namespace all components live in.

Guarantees: whatever they mount is invisible to the machine and disappears with the last of them,
however they end; the files they write at places compiled into them (/var/log/pods, /var/lib/cni,
/var/lib/kubelet, /run/containerd) land below the state folder; and the nodes' names resolve to
loopback for them without an entry in the machine's own hosts file.

Assumptions: the state folder isn't below /var/lib or /var/log.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.cluster.control_plane import component
from tests.cluster.errors import ClusterUnavailable
from tests.cluster.settings import NODES, Settings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.cluster.process import Component


@dataclass(frozen=True, slots=True)
class Programs:
    """The built programs, by module: where they are, and where they are seen inside."""

    outside: Mapping[str, Path]
    inside: Path

    def path(self, module: str, program: str) -> Path:
        """As the components see it, wherever the cache is."""
        return self.inside / module / program


def programs(settings: Settings, built: Mapping[str, Path]) -> Programs:
    return Programs(built, _stage(settings) / "bin")


def keeper(settings: Settings, programs: Programs) -> Component:
    """A sleeping process that holds the namespace while nothing else is in it."""
    steps = "\n".join([*_mounts(settings, programs), f": > {shlex.quote(str(_marker(settings)))}"])
    argv = ["unshare", "--mount", "--propagation", "private"]
    argv += ["sh", "-ec", f"{steps}\nexec sleep infinity"]
    return component(settings, "namespace", argv, _marker(settings).exists)


def prepare(settings: Settings, built: Mapping[str, Path]) -> None:
    stage = _stage(settings)
    for name in (*(f"bin/{module}" for module in built), "run", "var-log", "var-lib"):
        (stage / name).mkdir(parents=True, exist_ok=True)
    _inner_state(settings).mkdir(parents=True, exist_ok=True)
    hosts = Path("/etc/hosts")
    known = hosts.read_text() if hosts.exists() else ""
    (stage / "hosts").write_text(f"127.0.0.1 {' '.join(NODES)}\n{known}")
    _marker(settings).unlink(missing_ok=True)


def entering(holder: Component) -> Sequence[str]:
    """The command that runs the rest of its line inside the namespace."""
    identity = holder.identity
    if identity is None or not identity.alive():
        raise ClusterUnavailable("the cluster's mount namespace is gone; run `down`, then `up`")
    return ["nsenter", f"--target={identity.pid}", "--mount", "--root"]


def _mounts(settings: Settings, programs: Programs) -> list[str]:
    stage = _stage(settings)
    binds = [
        *((folder, programs.inside / module) for module, folder in programs.outside.items()),
        (settings.state, _inner_state(settings)),
        (stage / "run", Path("/run")),
        (stage / "hosts", Path("/etc/hosts")),
        (stage / "var-log", Path("/var/log")),
        (stage / "var-lib", Path("/var/lib")),
    ]
    lines = [f"mount --rbind {shlex.quote(str(a))} {shlex.quote(str(b))}" for a, b in binds]
    return ["mount --make-rshared /", *lines]


def _stage(settings: Settings) -> Path:
    return settings.data / "machine"


def _inner_state(settings: Settings) -> Path:
    """The state folder's place in the covered /run, so that its path stays the same inside."""
    run = Path("/run")
    inside_run = settings.state.is_relative_to(run)
    return _stage(settings) / "run" / (settings.state.relative_to(run) if inside_run else "state")


def _marker(settings: Settings) -> Path:
    return settings.data / "namespace-ready"
