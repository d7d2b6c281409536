"""Argo Workflows' and Tekton's controllers beside the API server, with manifests of their modules.

They run as their own deployments have them, but for what a process outside the cluster needs: an
administrator's kubeconfig, ports that are free, and no leader election.
"""

import os
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from benchmarks.peers import built, module_folder
from benchmarks.place import Place
from benchmarks.process import stop
from benchmarks.staying import free_port

_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_LONGEST_SERVED = 60.0
_OK = 200
_SHELL_IMAGE = "registry.example/shell:1"


@dataclass(frozen=True, slots=True)
class Installed:
    """What the cluster is ready for; it is run with or without more options."""

    command: Sequence[str]
    environment: Mapping[str, str]

    @contextmanager
    def running(self, *more: str) -> Iterator[None]:
        """Errors: RuntimeError with its last words where what is done meanwhile fails."""
        with tempfile.TemporaryFile("w+") as said:
            process = subprocess.Popen(
                [*self.command, *more],
                stdout=said,
                stderr=said,
                env={**os.environ, **self.environment},
            )
            try:
                yield
            except RuntimeError as error:
                said.seek(0)
                words = said.read()[-1000:].strip()
                raise RuntimeError(f"{words}\n{error}; exit code {process.poll()}") from error
            finally:
                stop(process)


@contextmanager
def argo_workflows(place: Place) -> Iterator[Installed]:
    """Errors: ClusterUnavailable where it can't be built."""
    program, folder = built("argo-workflows"), module_folder("argo-workflows") / "manifests/base"
    with place.namespace("argo") as namespace:
        for document in _read(folder / "workflow-controller/workflow-controller-configmap.yaml"):
            ports = {"metricsConfig": f"port: {free_port()}\n"}  # a value of one line isn't nested
            _apply_config(place, namespace, {**document, "data": ports})
        with _definitions(place, (folder / "crds/minimal").glob("argoproj.io_*.yaml")):
            command = [str(program), f"--kubeconfig={place.kubeconfig}", f"--namespace={namespace}"]
            yield Installed(command, {"LEADER_ELECTION_DISABLE": "true"})


@contextmanager
def tekton(place: Place) -> Iterator[Installed]:
    """Without its webhook: objects come with the defaults that it would set.

    Errors: ClusterUnavailable where it can't be built.
    """
    program, folder = built("tekton"), module_folder("tekton") / "config"
    images = ("entrypoint", "nop", "sidecarlogresults", "workingdirinit")
    command = [str(program), f"-kubeconfig={place.kubeconfig}", "-disable-ha"]
    command += [f"-{name}-image=registry.example/{name}:1" for name in images]
    command += [f"-shell-image={_SHELL_IMAGE}", f"-shell-image-win={_SHELL_IMAGE}"]
    with place.namespace("tekton") as namespace:
        for file in folder.glob("config-*.yaml"):
            for document in _read(file):
                _apply_config(place, namespace, document)
        with _definitions(place, (folder / "300-crds").glob("*.yaml")):
            yield Installed(command, {**_TEKTON, "SYSTEM_NAMESPACE": namespace})


_TEKTON = {
    "METRICS_DOMAIN": "tekton.dev/pipeline",
    "CONFIG_FEATURE_FLAGS_NAME": "feature-flags",
    "CONFIG_LEADERELECTION_NAME": "config-leader-election-controller",
    "PROBES_PORT": "18080",
    "METRICS_PROMETHEUS_PORT": "19090",
}


def _read(file: Path) -> Iterator[dict[str, Any]]:
    yield from YAML(typ="safe").load_all(file.read_text(encoding="utf-8"))


def _apply_config(place: Place, namespace: str, config: Mapping[str, Any]) -> None:
    metadata = {**config["metadata"], "namespace": namespace}
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    place.bare.write("POST", path, {**config, "metadata": metadata})


@contextmanager
def _definitions(place: Place, files: Iterator[Path]) -> Iterator[None]:
    """Served while the block runs; gone at its end, and their objects with them."""
    found = [document for file in files for document in _read(file)]
    try:
        for definition in found:
            definition["spec"].pop("conversion", None)  # its webhook doesn't run
            definition["spec"].pop("preserveUnknownFields", None)
            place.bare.write("POST", _DEFINITIONS, definition)
        deadline = time.monotonic() + _LONGEST_SERVED
        while not all(_is_served(place, definition["spec"]) for definition in found):
            if time.monotonic() > deadline:
                raise RuntimeError("a peer's definitions are not served")
            time.sleep(0.2)
        yield
    finally:
        for definition in found:
            place.bare.send("DELETE", f"{_DEFINITIONS}/{definition['metadata']['name']}")


def _is_served(place: Place, spec: Mapping[str, Any]) -> bool:
    version = next(one["name"] for one in spec["versions"] if one["storage"])
    path = f"/apis/{spec['group']}/{version}/{spec['names']['plural']}?limit=1"
    return place.bare.send("GET", path)[0] == _OK
