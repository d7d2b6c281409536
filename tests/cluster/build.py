"""The Kubernetes binaries, built once from Debian's source package and kept in the cache."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tests.cluster import packages
from tests.cluster.errors import ClusterUnavailable, ComponentFailed
from tests.cluster.files import exclusive
from tests.cluster.process import SYSTEM_PATH

if TYPE_CHECKING:
    from tests.cluster.settings import Settings

VERSION = "1.20.2"
BINARIES = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kubectl")

_VERSION_FILE = f"""\
KUBE_GIT_COMMIT='debian'
KUBE_GIT_TREE_STATE='archive'
KUBE_GIT_VERSION='v{VERSION}'
KUBE_GIT_MAJOR='1'
KUBE_GIT_MINOR='20'
"""

_PAUSE = """\
#include <signal.h>
#include <unistd.h>
#include <sys/wait.h>
static void end(int number) { _exit(0); }
static void reap(int number) { while (waitpid(-1, NULL, WNOHANG) > 0) {} }
int main(void) {
    signal(SIGTERM, end);
    signal(SIGINT, end);
    signal(SIGCHLD, reap);
    for (;;) pause();
}
"""
"""The first process of every pod: it holds the network namespace and ends when told."""


def ensure(settings: Settings, say: packages.Say) -> None:
    """Make the binaries unless the cache has them; about five minutes on two processors.

    Guarantees: two at once build once; a build that was killed leaves nothing that counts as
    built, and its files are removed by the next one.
    Errors: ClusterUnavailable, with the end of the compiler's output when it failed.
    """
    if settings.binaries.exists():
        return
    waiting = partial(say, "another build is running; waiting for it")
    try:
        with exclusive(settings.cache / "build.lock", waiting):
            _build_unless_there(settings, say)
    except OSError as error:
        raise ClusterUnavailable(f"the cache folder can't be used: {error}") from error


def _build_unless_there(settings: Settings, say: packages.Say) -> None:
    if settings.binaries.exists():
        return
    for abandoned in settings.cache.glob("building-*"):
        shutil.rmtree(abandoned)
    packages.install(packages.missing(packages.BUILD), say)
    log = settings.cache / "build.log"
    log.unlink(missing_ok=True)
    work = Path(tempfile.mkdtemp(prefix="building-", dir=settings.cache))
    try:
        _build(work, log, say)
        (work / "out").rename(settings.binaries)
    finally:
        shutil.rmtree(work)


def _build(work: Path, log: Path, say: packages.Say) -> None:
    out = work / "out"
    out.mkdir()
    say("building the pause program")
    (work / "pause.c").write_text(_PAUSE)
    _run(["gcc", "-O2", "-static", "-o", str(out / "pause"), str(work / "pause.c")], work, log)
    say(f"fetching the source of Kubernetes {VERSION}")
    packages.fetch_source("kubernetes", work)
    (description,) = work.glob("kubernetes_*.dsc")
    _run(["dpkg-source", "--no-check", "-x", str(description), str(work / "tree")], work, log)
    source = work / "go" / "src" / "k8s.io" / "kubernetes"
    source.parent.mkdir(parents=True)
    source.symlink_to(work / "tree")
    (work / "version").write_text(_VERSION_FILE)
    say(f"building Kubernetes {VERSION}, once, in about five minutes (log: {log})")
    targets = " ".join(f"cmd/{name}" for name in BINARIES)
    environment = {
        "GOPATH": str(work / "go"),
        "GOCACHE": str(work / "go-cache"),
        "GO111MODULE": "off",
        "GOFLAGS": "",
        "GOLDFLAGS": "-s -w",
        "CGO_ENABLED": "0",
        "KUBE_GIT_VERSION_FILE": str(work / "version"),
        "PWD": str(source),
    }
    _run(["make", f"WHAT={targets}"], source, log, environment)
    made = source / "_output" / "local" / "go" / "bin"
    for name in BINARIES:
        shutil.move(made / name, out / name)


def _run(
    argv: list[str], folder: Path, log: Path, environment: dict[str, str] | None = None
) -> None:
    """Run to the end, or die with us: a killed build leaves no compiler running."""
    together = ["setpriv", "--pdeathsig=KILL", "unshare", "--pid", "--fork", "--kill-child"]
    with log.open("ab") as output:
        done = subprocess.run(
            [*together, *argv],
            cwd=folder,
            env={"PATH": SYSTEM_PATH, "HOME": str(folder), **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            check=False,
        )
    if done.returncode != 0:
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-12:])
        raise ComponentFailed(argv[0], f"exit code {done.returncode} (log: {log})", tail)
