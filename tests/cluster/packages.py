"""The Debian packages the cluster is made of, installed without starting their services."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.cluster.errors import ClusterUnavailable
from tests.cluster.process import SYSTEM_PATH

Say = Callable[[str], None]
"""Where progress goes: one line at a time."""

RUN = {
    "apache2-utils": "htpasswd",
    "busybox-static": "busybox",
    "conntrack": "conntrack",
    "containerd": "containerd",
    "containernetworking-plugins": "/usr/lib/cni/ptp",
    "docker-registry": "docker-registry",
    "etcd-server": "etcd",
    "iproute2": "ip",
    "iptables": "iptables",
    "openssl": "openssl",
    "runc": "runc",
    "socat": "socat",
    "util-linux": "nsenter",
}
"""Needed at every start: package and a program of it."""

BUILD = {
    "dpkg-dev": "dpkg-source",
    "gcc": "gcc",
    "golang-go": "go",
    "jq": "jq",
    "libc6-dev": "/usr/include/stdio.h",
    "make": "make",
    "rsync": "rsync",
}
"""Needed once, to build the binaries."""

_POLICY = Path("/usr/sbin/policy-rc.d")
_POLICY_TEXT = """\
#!/bin/sh
# engine-test-cluster: no service starts while packages are installed
exit 101
"""


def check_machine() -> None:
    """Errors: ClusterUnavailable with the first thing this machine lacks."""
    if os.geteuid() != 0:
        raise ClusterUnavailable("the test cluster needs root (mounts, cgroups, containers)")
    if shutil.which("apt-get") is None or not Path("/etc/debian_version").exists():
        raise ClusterUnavailable("the test cluster is made of Debian's packages: no apt-get here")


def missing(packages: dict[str, str]) -> list[str]:
    return sorted(name for name, program in packages.items() if not _installed(program))


def install(names: Sequence[str], say: Say) -> None:
    """Errors: ClusterUnavailable with apt's own words."""
    if not names:
        return
    say(f"installing {', '.join(names)}")
    with _services_held_back():
        _apt("update")
        _apt("install", "--yes", "--no-install-recommends", *names)


def fetch_source(name: str, folder: Path) -> None:
    """Download a source package through the machine's own archive entries, asked for `deb-src`.

    The machine's list of sources isn't touched: apt is pointed at a copy.
    """
    parts, lists = folder / "sources", folder / "lists"
    parts.mkdir()
    (lists / "partial").mkdir(parents=True)
    for entry in _archive_entries():
        text = entry.read_text()
        if entry.suffix == ".sources":
            lines = [
                "Types: deb-src" if line.startswith("Types:") else line
                for line in text.splitlines()
            ]
        else:
            lines = [
                line.replace("deb ", "deb-src ", 1)
                for line in text.splitlines()
                if line.startswith("deb ")
            ]
        (parts / entry.name).write_text("\n".join(lines) + "\n")
    options = [
        "-o", "Dir::Etc::SourceList=/dev/null", "-o", f"Dir::Etc::SourceParts={parts}",
        "-o", f"Dir::State::Lists={lists}", "-o", "Dir::Cache::PkgCache=",
        "-o", "Dir::Cache::SrcPkgCache=", "-o", "APT::Sandbox::User=root",
    ]  # fmt: skip
    _apt(*options, "update")
    _apt(*options, "source", "--download-only", name, cwd=folder)


def _archive_entries() -> list[Path]:
    folder = Path("/etc/apt/sources.list.d")
    single = Path("/etc/apt/sources.list")
    found = sorted([*folder.glob("*.sources"), *folder.glob("*.list")])
    return [*found, single] if single.exists() else found


def _installed(program: str) -> bool:
    """Debian's own program counts, not one of the same name elsewhere on the PATH."""
    if program.startswith("/"):
        return Path(program).exists()
    return shutil.which(program, path=SYSTEM_PATH) is not None


def _apt(*arguments: str, cwd: Path | None = None) -> None:
    done = subprocess.run(
        ["apt-get", "-qq", "-o", "DPkg::Lock::Timeout=120", *arguments],
        env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
        capture_output=True,
        text=True,
        cwd=cwd,
        check=False,
    )
    errors = [line for line in done.stderr.splitlines() if line.startswith("E:")]
    if done.returncode != 0:
        cause = errors[0] if errors else f"exit code {done.returncode}"
        raise ClusterUnavailable(f"apt-get failed: {cause}")


@contextmanager
def _services_held_back() -> Iterator[None]:
    """Debian starts a service when it installs it, unless this policy says no."""
    left_by_us = _POLICY.exists() and _POLICY.read_text() == _POLICY_TEXT
    if _POLICY.exists() and not left_by_us:
        yield
        return
    _POLICY.write_text(_POLICY_TEXT)
    _POLICY.chmod(0o755)
    try:
        yield
    finally:
        _POLICY.unlink(missing_ok=True)
