"""The Debian packages the cluster needs, installed without starting their services."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import time
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
    "containernetworking-plugins": "/usr/lib/cni/ptp",
    "docker-registry": "docker-registry",
    "iproute2": "ip",
    "iptables": "iptables",
    "openssl": "openssl",
    "runc": "runc",
    "socat": "socat",
    "util-linux": "nsenter",
}
"""Needed at every start: package and a program of it."""

_LONGEST_LOCK = 600
"""Seconds for which another apt may hold its locks."""
_BETWEEN_LOCKS = 3.0
_IS_LOCKED = re.compile("Could not get lock|Unable to lock|Unable to acquire the dpkg")

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


def unpack(name: str, folder: Path, say: Say) -> None:
    """Put a package's files below `folder`, which isn't there yet; nothing is installed.

    Errors: ClusterUnavailable with apt's own words.
    """
    if shutil.which("apt-get") is None or shutil.which("dpkg") is None:
        raise ClusterUnavailable(f"there is no {name} on this machine, and no apt-get to fetch it")
    say(f"fetching {name}")
    with tempfile.TemporaryDirectory(prefix="fetching-", dir=folder.parent) as work:
        try:
            _apt("download", name, folder=work)
        except ClusterUnavailable:
            _apt("update")
            _apt("download", name, folder=work)
        (package,) = Path(work).glob("*.deb")
        out = Path(work) / "out"
        subprocess.run(["dpkg", "-x", package, out], check=True, capture_output=True)
        out.rename(folder)


def _installed(program: str) -> bool:
    """Debian's own program counts, not one of the same name elsewhere on the PATH."""
    if program.startswith("/"):
        return Path(program).exists()
    return shutil.which(program, path=SYSTEM_PATH) is not None


def _apt(*arguments: str, folder: str | None = None) -> None:
    """Errors: ClusterUnavailable with apt's own words."""
    deadline = time.monotonic() + _LONGEST_LOCK
    while True:
        done = subprocess.run(
            ["apt-get", "-qq", "-o", f"DPkg::Lock::Timeout={_LONGEST_LOCK}", *arguments],
            env={**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"},
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode == 0:
            return
        if not _IS_LOCKED.search(done.stderr) or time.monotonic() > deadline:
            break
        # That option waits for dpkg's lock alone, not for those of the index and of the cache.
        time.sleep(_BETWEEN_LOCKS)
    errors = [line for line in done.stderr.splitlines() if line.startswith("E:")]
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
