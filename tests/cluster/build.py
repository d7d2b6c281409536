"""The cluster's programs, built once from Go modules and kept in the cache.

A folder of `modules/` holds one small module: its go.mod pins the version of a program, its go.sum
the checksum of everything that goes into it, and its `tool` lines name the main packages. Nothing
else says a version.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.cluster import go_toolchain
from tests.cluster.errors import ClusterUnavailable
from tests.cluster.files import exclusive

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.cluster.packages import Say
    from tests.cluster.settings import Settings

MODULES = Path(__file__).parent / "modules"
_LDFLAGS = "-s -w"
_TAGS = "no_btrfs,no_devmapper,no_zfs"
"""File systems of containerd that need C libraries; no other program knows these tags."""


@dataclass(frozen=True)
class Module:
    """One folder of `modules/` and what is built from it."""

    folder: Path

    @classmethod
    def of(cls, name: str) -> Module:
        """Errors: ClusterUnavailable with the names that there are."""
        folder = MODULES / name
        if not (folder / "go.mod").exists():
            known = ", ".join(sorted(found.name for found in MODULES.iterdir()))
            raise ClusterUnavailable(f"there is no module {name}; there are {known}")
        return cls(folder)

    @cached_property
    def _go_mod(self) -> str:
        return (self.folder / "go.mod").read_text()

    @property
    def version(self) -> str:
        """Of the module that holds the first program, such as v1.36.3; "" where it is our own."""
        for package in self._tools:
            for path, version in self._lines(r"^(?:\t|require )(\S+) (v\S+)"):
                if package == path or package.startswith(f"{path}/"):
                    return str(version)
        return ""

    @property
    def packages(self) -> list[str]:
        return self._tools or ["."]

    @property
    def programs(self) -> list[str]:
        """The files that are made, in the order of `packages`; the folder's name if it is one."""
        if len(self.packages) == 1:
            return [self.folder.name]
        return [package.rpartition("/")[2] for package in self.packages]

    @cached_property
    def go_version(self) -> tuple[int, int]:
        """The oldest Go that the module can be built with."""
        found = re.search(r"^go (\d+)\.(\d+)", self._go_mod, re.MULTILINE)
        assert found, f"{self.folder / 'go.mod'} has no go line"
        return int(found[1]), int(found[2])

    @property
    def command(self) -> list[str]:
        """`go build` but for where the programs go; part of what the cache is keyed by."""
        flags = ["-trimpath", f"-tags={_TAGS}", f"-ldflags={' '.join([_LDFLAGS, *self._stamps])}"]
        return ["build", "-mod=readonly", "-buildvcs=false", *flags]

    def digest(self, go_version: str) -> str:
        """Of everything that decides what the programs are."""
        said = hashlib.sha256("\0".join([go_version, *self.command, *self.packages]).encode())
        for name in sorted(path.name for path in self.folder.iterdir()):
            said.update(name.encode() + b"\0" + (self.folder / name).read_bytes())
        return said.hexdigest()[:12]

    @cached_property
    def _tools(self) -> list[str]:
        block = re.search(r"^tool \(\n(.*?)^\)", self._go_mod, re.MULTILINE | re.DOTALL)
        return block[1].split() if block else self._lines(r"^tool (\S+)")

    def _lines(self, pattern: str) -> list[Any]:
        return re.findall(pattern, self._go_mod, re.MULTILINE)

    @property
    def _stamps(self) -> list[str]:
        """What Kubernetes says of its version is set by the linker."""
        if not any(package.startswith("k8s.io/kubernetes/") for package in self.packages):
            return []
        major, minor, _ = self.version.removeprefix("v").split(".")
        base, client = "k8s.io/component-base/version", "k8s.io/client-go/pkg/version"
        return [
            f"-X {base}.gitVersion={self.version}",
            f"-X {base}.gitMajor={major}",
            f"-X {base}.gitMinor={minor}",
            f"-X {client}.gitVersion={self.version}",
        ]


def modules(settings: Settings) -> dict[str, Module]:
    """What a cluster is made of, by the name of the folder in which its programs are found."""
    names = {"kubernetes": f"kubernetes-{settings.release}"}
    return {
        name: Module.of(names.get(name, name))
        for name in ("kubernetes", "etcd", "containerd", "pause")
    }


def tools() -> dict[str, Module]:
    """What tests of the chart use besides; no part of a cluster."""
    return {"helm": Module.of("helm")}


def ensure(
    settings: Settings, say: Say, chosen: Mapping[str, Module] | None = None
) -> dict[str, Path]:
    """The folders with the programs; those that the cache lacks are built first, in minutes.

    They are those of a cluster, unless others are chosen.

    Guarantees: two at once build once; a build that was killed leaves nothing that counts as
    built, and its files are removed by the next one.
    Errors: ClusterUnavailable, with the last of the compiler's words when it failed.
    """
    needed = modules(settings) if chosen is None else chosen
    oldest = max(module.go_version for module in needed.values())
    try:
        toolchain = go_toolchain.find(settings.cache, oldest, say)
        made = {name: _place(settings, one, toolchain) for name, one in needed.items()}
        if not all(folder.exists() for folder in made.values()):
            waiting = partial(say, "another build is running; waiting for it")
            with exclusive(settings.cache / "build.lock", waiting):
                missing = {
                    made[name]: one for name, one in needed.items() if not made[name].exists()
                }
                _build(settings.cache, missing, toolchain, say)
    except OSError as error:
        raise ClusterUnavailable(f"the cache folder can't be used: {error}") from error
    return made


def _place(settings: Settings, module: Module, toolchain: go_toolchain.Toolchain) -> Path:
    return settings.cache / f"{module.folder.name}-{module.digest(toolchain.version)}"


def _build(
    cache: Path, missing: Mapping[Path, Module], toolchain: go_toolchain.Toolchain, say: Say
) -> None:
    """One after the other, so that what they share is downloaded and compiled once."""
    for abandoned in cache.glob("building-*"):
        shutil.rmtree(abandoned)
    log = cache / "build.log"
    log.unlink(missing_ok=True)
    work = Path(tempfile.mkdtemp(prefix="building-", dir=cache))
    try:
        for made, module in missing.items():
            say(f"building {module.folder.name} {module.version}".rstrip() + f", once (log: {log})")
            out = work / made.name
            out.mkdir()
            for package, program in zip(module.packages, module.programs, strict=True):
                argv = [*module.command, "-o", str(out / program), package]
                _run([str(toolchain.program), *argv], module.folder, work, log)
            out.rename(made)
    finally:
        shutil.rmtree(work)


def _run(argv: list[str], folder: Path, work: Path, log: Path) -> None:
    """Run to the end, or die with us: a killed build leaves no compiler running.

    What is downloaded and compiled on the way stays below `work`. Where Go's modules come from is
    the machine's own setting.
    """
    together = ["setpriv", "--pdeathsig=KILL", "unshare", "--pid", "--fork", "--kill-child"]
    environment = {
        **{name: value for name, value in os.environ.items() if name != "GOROOT"},
        "CGO_ENABLED": "0",
        "GOTOOLCHAIN": "local",
        "GOFLAGS": "-modcacherw",
        "GOWORK": "off",
        "GOPATH": str(work / "go"),
        "GOMODCACHE": str(work / "go" / "mod"),
        "GOCACHE": str(work / "go-cache"),
    }
    with log.open("ab") as output:
        done = subprocess.run(
            [*together, *argv],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            check=False,
        )
    if done.returncode != 0:
        lines = log.read_text(errors="replace").splitlines()
        said = [line for line in lines if not line.startswith("go: downloading")]
        cause = said[-1].strip() if said else f"exit code {done.returncode}"
        raise ClusterUnavailable(f"{folder.name} can't be built: {cause} (log: {log})")
