"""Where a row is measured: the project's own control plane, or the sandbox where there is none."""

import json
import os
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.bare import Bare
from benchmarks.process import ROOT
from tests.cluster.cluster import Cluster
from tests.cluster.errors import ClusterUnavailable
from tests.cluster.session import session_cluster

CLUSTER, SANDBOX = "cluster", "sandbox"
TREE = "PYTHONPATH"
"""The variable that says whose `engine` is measured, where it isn't this tree's."""
_VERBS = frozenset({"create", "update", "patch", "delete", "deletecollection"})
_AUDIT_LAG = 0.5


@dataclass(frozen=True, slots=True)
class Asked:
    """One request that the server answered, as its own log has it."""

    verb: str
    resource: str

    @property
    def is_write(self) -> bool:
        return self.verb in _VERBS


@dataclass(slots=True)
class Place:
    """An API server, with its own count of requests."""

    kind: str
    kubeconfig: Path
    cluster: Cluster | None = None
    process: "subprocess.Popen[str] | None" = None
    bare: Bare = field(init=False)

    def __post_init__(self) -> None:
        self.bare = Bare(self.kubeconfig)

    @property
    def environment(self) -> dict[str, str]:
        """An older tree has its own configuration, or none."""
        config = Path(os.environ.get(TREE, ROOT), "benchmarks", "control_plane.yaml")
        return {
            "KUBECONFIG": str(self.kubeconfig),
            "ENGINE_SECRET_TOKEN": "not-a-secret",
            **({"ENGINE_CONFIG": str(config)} if config.is_file() else {}),
        }

    @contextmanager
    def requests(self, user_agent: str) -> Iterator[list[Asked]]:
        """What clients of that name ask meanwhile; filled in at the end."""
        found: list[Asked] = []
        if self.cluster is not None:
            since = self.cluster.audit_position()
            yield found
            time.sleep(_AUDIT_LAG)
            entries = self.cluster.audit_entries(user_agent, since)
            for entry in {entry["auditID"]: entry for entry in entries}.values():
                resource = entry.get("objectRef", {}).get("resource", "")
                found.append(Asked(entry["verb"], resource))
            return
        assert self.process is not None
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write("clear\n")
        self.process.stdin.flush()
        self.process.stdout.readline()
        yield found
        self.process.stdin.write("tell\n")
        self.process.stdin.flush()
        for verb, resource, agent in json.loads(self.process.stdout.readline()):
            if agent.startswith(user_agent):
                found.append(Asked(verb, resource))

    @contextmanager
    def namespace(self, words: str) -> Iterator[str]:
        """A namespace of one measurement, gone when the next one begins."""
        name = f"bench-{words}-{uuid.uuid4().hex[:6]}"
        self.bare.write("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        try:
            yield name
        finally:
            path = f"/api/v1/namespaces/{name}"
            self.bare.send("DELETE", f"{path}/pods", {"gracePeriodSeconds": 0})
            self.bare.send("DELETE", path)
            while self.bare.get(path)["kind"] == "Namespace":
                time.sleep(0.2)


@contextmanager
def best_place() -> Iterator[tuple[Place, str]]:
    """A real control plane, else the sandbox with a line that says why."""
    with ExitStack() as stack:
        try:
            cluster = stack.enter_context(session_cluster())
        except ClusterUnavailable as error:
            yield stack.enter_context(sandbox()), str(error).partition("\n")[0]
            return
        if cluster.audit_log is None:
            yield stack.enter_context(sandbox()), "this cluster's requests can't be counted"
            return
        yield Place(CLUSTER, cluster.kubeconfig, cluster), ""


@contextmanager
def sandbox(latency: float = 0.0) -> Iterator[Place]:
    """A sandbox in a process of its own: it shares neither our lock nor our memory.

    Each write of a job comes back `latency` seconds late.
    """
    with tempfile.TemporaryDirectory(prefix="engine-bench-") as folder:
        kubeconfig = Path(folder, "kubeconfig")
        process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.sandbox_server", str(kubeconfig), str(latency)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        try:
            assert process.stdout is not None
            process.stdout.readline()
            yield Place(SANDBOX, kubeconfig, process=process)
        finally:
            with suppress(OSError):
                process.terminate()
            process.wait()
