"""Other tools that do a row's work. Where one can't be had, the row says so and goes on."""

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from benchmarks.figures import Work
from benchmarks.place import SANDBOX, Place
from benchmarks.process import Done, run
from tests.cluster import build, go_toolchain
from tests.cluster.errors import ClusterUnavailable
from tests.cluster.settings import Settings

_ON_SANDBOX = "other tools are measured on a real control plane alone"


@dataclass(frozen=True, slots=True)
class Peer:
    """A tool's command, or else why there is none."""

    label: str
    command: Sequence[str] = ()
    why: str = ""

    def work(self, measured: Callable[[Sequence[str]], float]) -> dict[str, Work]:
        """What takes turns with the engine: nothing where the tool can't be had."""
        return {self.label: partial(measured, self.command)} if self.command else {}

    @property
    def without(self) -> dict[str, str]:
        return {} if self.command else {self.label: self.why}


def kubectl(place: Place) -> Peer:
    """`kubectl apply --server-side`, the cluster's own."""
    label = "kubectl apply"
    if place.cluster is None:
        return Peer(label, why=_ON_SANDBOX)
    if place.cluster.kubectl is None:
        return Peer(label, why="this cluster comes without kubectl")
    return Peer(label, [str(place.cluster.kubectl), "apply", "--server-side"])


def kapp(place: Place) -> Peer:
    """`kapp deploy`, eight objects at a time, without waiting for them; built as the cluster is."""
    label = "kapp deploy"
    if place.kind == SANDBOX:
        return Peer(label, why=_ON_SANDBOX)
    try:
        program = built("kapp")
    except ClusterUnavailable as error:
        return Peer(label, why=str(error).partition("\n")[0])
    return Peer(label, [str(program), "deploy", "--wait=false", "--apply-concurrency=8", "--yes"])


def kapp_deploy(
    command: Sequence[str], place: Place, namespace: str, manifests: Path, app: str = "bench"
) -> Done:
    """Errors: RuntimeError where it failed."""
    where = ["--app", app, "--namespace", namespace, "--file", str(manifests)]
    return run([*command, *where], environment=place.environment)


def kube_janitor(place: Place) -> Peer:
    """One pass over pods. No package index has it: $BENCH_KUBE_JANITOR names a Python that does."""
    label, python = "kube-janitor", os.environ.get("BENCH_KUBE_JANITOR")
    if place.kind == SANDBOX:
        return Peer(label, why=_ON_SANDBOX)
    if not python:
        return Peer(label, why="$BENCH_KUBE_JANITOR names no Python that has it")
    return Peer(label, [python, "-m", "kube_janitor", "--once", "--include-resources=pods"])


@cache
def built(name: str) -> Path:
    """The only program of a module, made as the cluster's are.

    Errors: ClusterUnavailable where it can't be.
    """
    chosen = {name: build.Module.of(name)}
    return build.ensure(Settings.from_environment(), _say, chosen)[name] / name


def module_folder(name: str) -> Path:
    """What is in the peer's own module, manifests among it.

    Errors: ClusterUnavailable where it can't be fetched.
    """
    module, settings = build.Module.of(name), Settings.from_environment()
    go = go_toolchain.find(settings.cache, module.go_version, _say).program
    command = [str(go), "list", "-find", "-f", "{{.Module.Dir}}", *module.packages]
    return Path(run(command, folder=module.folder).out.strip())


def _say(line: str) -> None:
    print(f"bench: {line}", file=sys.stderr, flush=True)
