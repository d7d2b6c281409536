"""The cluster that a test drives the engine on: a real one, or the sandbox."""

import subprocess
import time
from abc import ABC, abstractmethod
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path
from typing import Any

from engine.sandbox import FOREVER, Sandbox
from engine.sandbox import Run as Scene
from tests.cluster.cluster import Cluster
from tests.cluster.images import Images
from tests.support.api import Api
from tests.support.engine import Engine

WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})
NAMESPACE = "ci"
IMAGE = "registry.example/busybox:1"
"""Of every sandbox."""


class ClusterUnderTest(ABC):
    """A cluster as these tests need it."""

    kubeconfig: Path
    image: str
    namespace: str
    counts_late: bool
    """Whether its quotas are counted from a cache, so that they may let in too many."""
    source: str
    """What an engine calls its specs here by default. Of two engines that share it, one would prune
    what has outlived its TTL of the other's.
    """

    def script(
        self,
        job: str,
        *,
        lasts: float = 0.0,
        ends: int = 0,
        on_term: int | None = 143,
        container: str = "main",
    ) -> str:
        """A script of `container` that takes `lasts` seconds and exits with `ends`.

        On SIGTERM it exits with `on_term`; None: it ignores that, and has to be killed.
        """
        self._plan(job, container, lasts, ends, on_term)
        answer = "" if on_term is None else f"exit {on_term}"
        return f"trap '{answer}' TERM\nsleep {lasts} & wait\nexit {ends}\n"

    @abstractmethod
    def _plan(self, job: str, container: str, lasts: float, ends: int, on_term: int | None) -> None:
        """Have the job's pods do so, where nothing is run."""

    @abstractmethod
    def delete_pod(self, name: str, *options: str) -> None:
        """As a user would, from outside, with `options` of kubectl delete about the grace."""

    @abstractmethod
    def forget_requests(self) -> None: ...

    @abstractmethod
    def requests(self) -> list[str]:
        """Verbs of the engine's requests since `forget_requests`."""

    @property
    @abstractmethod
    def other_image(self) -> str:
        """One that can be pulled, too."""

    @abstractmethod
    def writes(self) -> list[tuple[str, str, str]]:
        """(verb, resource, name) of each write of the engine's that the server carried out since
        `forget_requests`; Events are left out.
        """


class RealCluster(ClusterUnderTest):
    counts_late = True

    def __init__(self, cluster: Cluster, namespace: str, images: Images) -> None:
        self.kubeconfig = cluster.kubeconfig
        self.image = images.busybox
        self.namespace = self.source = namespace
        self._cluster, self._images = cluster, images
        self._position = 0

    def _plan(self, *play: object) -> None:
        """The container runs the script itself."""

    def delete_pod(self, name: str, *options: str) -> None:
        command = [
            str(self._cluster.kubectl), "--kubeconfig", str(self.kubeconfig),
            "-n", self.namespace, "delete", "pod", name, "--wait=false", *options,
        ]  # fmt: skip
        subprocess.run(command, check=True, capture_output=True)

    def forget_requests(self) -> None:
        time.sleep(0.5)  # an entry may follow its answer by a moment
        self._position = self._cluster.audit_position()

    def requests(self) -> list[str]:
        entries = self._cluster.audit_entries("engine/", self._position)
        return [str(entry["verb"]) for entry in entries if self._is_of_this_test(entry)]

    @property
    def other_image(self) -> str:
        return self._images.build()

    def writes(self) -> list[tuple[str, str, str]]:
        time.sleep(0.5)  # as above
        entries = self._cluster.audit_entries("engine/", self._position)
        found = [
            (entry["verb"], about["resource"], about.get("name", ""))
            for entry in entries
            if (about := entry.get("objectRef", {})).get("namespace") == self.namespace
            and entry["verb"] in WRITES
            and entry["responseStatus"]["code"] < HTTPStatus.MULTIPLE_CHOICES
        ]
        return [one for one in found if one[1] != "events"]

    def _is_of_this_test(self, entry: dict[str, Any]) -> bool:
        """Lists of all namespaces belong to this test if they name its source.

        Questions for rights name no test: they aren't counted.
        """
        about = entry.get("objectRef", {})
        found = about.get("namespace")
        if about.get("apiGroup") == "authorization.k8s.io":
            return False
        if found is None and entry["verb"] == "list":
            return self.source in entry["requestURI"]
        return found in (self.namespace, None)


class SandboxCluster(ClusterUnderTest):
    counts_late = False
    source = "default"

    def __init__(self, sandbox: Sandbox, folder: Path) -> None:
        self.kubeconfig = sandbox.write_kubeconfig(folder / "kubeconfig")
        self.image = IMAGE
        self.namespace = NAMESPACE
        self.sandbox = sandbox
        sandbox.namespace(NAMESPACE)

    def _plan(self, job: str, container: str, lasts: float, ends: int, on_term: int | None) -> None:
        scene = Scene(duration=max(lasts, 0.05), exit_code=ends)
        if on_term is None:
            scene = replace(scene, stop=FOREVER)
        else:
            scene = replace(scene, stop_exit_code=on_term)
        self.sandbox.node.will(scene, pod=f"{job}-*", container=container)

    def delete_pod(self, name: str, *options: str) -> None:
        periods = [option.partition("=")[2] for option in options if "=" in option]
        grace = int(periods[0]) if periods else None
        Api.from_kubeconfig(self.kubeconfig).delete("pods", name, self.namespace, grace=grace)

    def forget_requests(self) -> None:
        self.sandbox.requests.clear()

    def requests(self) -> list[str]:
        return [
            entry.verb
            for entry in self.sandbox.requests.where()
            if entry.user_agent.startswith("engine/")
        ]

    other_image = "registry.example/busybox:2"

    def writes(self) -> list[tuple[str, str, str]]:
        return [
            (entry.verb, entry.resource, entry.name)
            for entry in self.sandbox.requests.where()
            if entry.user_agent.startswith("engine/")
            and entry.is_write
            and entry.code < HTTPStatus.MULTIPLE_CHOICES
            and entry.resource != "events"
        ]


def engine_on(sandbox: Sandbox, folder: Path) -> Engine:
    """The command line on a sandbox; its specs and its kubeconfig are below `folder`."""
    return engine_for(SandboxCluster(sandbox, folder), folder)


def engine_for(target: ClusterUnderTest, folder: Path) -> Engine:
    specs = folder / "specs"
    specs.mkdir(exist_ok=True)
    environment = {"ENGINE_SOURCE": target.source}
    return Engine(target.kubeconfig, target.namespace, specs, target.image, environment)
