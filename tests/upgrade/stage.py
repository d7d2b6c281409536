"""Where jobs are played: a sandbox, the command line, a folder of specs, and hands to interfere."""

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from engine.sandbox import Clock, Run, Sandbox
from tests.support.api import Api
from tests.support.engine import CommandResult, Engine, finish

IMAGE = "registry.example/busybox:1"
NAMESPACE = "ci"
BEGINNING = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
MANAGED = "app.kubernetes.io/managed-by=engine"
_SECRETS = {"ENGINE_SECRET_TOKEN": "made-up-token", "ENGINE_SECRET_PASSWORD": "made-up-password"}
_LONGEST = "100s"
_DOCUMENT = {"apiVersion": "jobs.engine/v1alpha1", "kind": "JobSpec"}


@dataclass(frozen=True, slots=True)
class Stage:
    """One cluster and one source of specs."""

    sandbox: Sandbox
    engine: Engine
    api: Api

    def spec(self, name: str, namespace: str = NAMESPACE, /, **spec: Any) -> None:
        """Write a spec into the folder, or the next version of it."""
        metadata = {"name": name, "namespace": namespace}
        self.document(f"{name}.yaml", metadata, **spec)

    def document(self, file: str, metadata: dict[str, Any], /, **spec: Any) -> None:
        whole = {**_DOCUMENT, "metadata": metadata, "spec": {"image": IMAGE, **spec}}
        self.engine.write(file, json.dumps(whole, indent=1, ensure_ascii=False) + "\n")

    def plays(self, job: str, run: Run, container: str = "main") -> None:
        """From now on, what this container of a job's pods does."""
        self.sandbox.node.will(run, pod=f"{job}-*", container=container)

    def once(self, *arguments: str) -> CommandResult:
        """A reconcile that comes to an end."""
        return self._believed(self.engine.reconcile("--timeout", _LONGEST, *arguments))

    def until(self, seconds: int) -> CommandResult:
        """A reconcile that is left with jobs under way."""
        run = self.engine.reconcile("--timeout", f"{seconds}s")
        assert "timeout: " in run.stderr, run.stderr
        return run

    @contextmanager
    def meanwhile(self, *, to_its_end: bool = True) -> Iterator[None]:
        """A reconcile under way; leaving the block waits for its end, or interrupts it."""
        process = self.engine.start("--timeout", _LONGEST)
        try:
            yield
        except BaseException as error:
            process.kill()
            error.add_note(process.communicate()[1])
            raise
        if to_its_end:
            self._believed(finish(process))
        else:
            process.send_signal(signal.SIGINT)
            assert finish(process).code == 130

    def pod(self, job: str, namespace: str = NAMESPACE, *, attempt: int = 1) -> str:
        """Name of the pod of a job's attempt, once there is one that has not ended."""
        return self._pod(job, namespace, ("Pending", "Running"), attempt)

    def running(self, job: str, namespace: str = NAMESPACE, *, attempt: int = 1) -> str:
        """Name of the pod of a job's attempt, once it runs."""
        return self._pod(job, namespace, ("Running",), attempt)

    def wait_for(self, job: str, namespace: str = NAMESPACE, /, **wanted: object) -> None:
        """Until a job's record says so, by its keys."""

        def told() -> bool:
            found = self.record(job, namespace)
            return all(found.get(key) == value for key, value in wanted.items())

        self.api.wait(told, f"record of {namespace}/{job} with {wanted}")

    def record(self, job: str, namespace: str = NAMESPACE) -> dict[str, Any]:
        """What a job's record holds; empty without one."""
        item = self.api.find("configmaps", f"{job}.record", namespace)
        held: dict[str, Any] = json.loads(item["data"]["record.json"]) if item else {}
        return held

    def report(self, pod: str, status: dict[str, Any], namespace: str = NAMESPACE) -> None:
        """Change a pod's status, as a kubelet that the sandbox doesn't play would."""
        self.api.patch("pods", f"{pod}/status", {"status": status}, namespace)

    def _pod(self, job: str, namespace: str, phases: tuple[str, ...], attempt: int) -> str:
        def look() -> str:
            labels = f"{MANAGED},jobs.engine/job={job},jobs.engine/attempt={attempt}"
            pods = self.api.list("pods", namespace, labels=labels)
            found = [pod["metadata"]["name"] for pod in pods if pod["status"]["phase"] in phases]
            return str(found[0]) if found else ""

        return self.api.wait(look, f"pod of {namespace}/{job}")

    @staticmethod
    def _believed(run: CommandResult) -> CommandResult:
        """What was refused as a whole, crashed or took too long is no scene of anything."""
        assert run.code not in (2, 6, 70, 130), run.stderr
        assert "timeout: " not in run.stderr, run.stderr
        return run


@contextmanager
def stage(
    folder: Path,
    *,
    begin: datetime = BEGINNING,
    namespaces: tuple[str, ...] = (),
) -> Iterator[Stage]:
    """A stage in `folder` whose clock begins at `begin`."""
    clock = Clock(start=begin)
    with Sandbox(clock=clock) as sandbox:
        for namespace in (NAMESPACE, *namespaces):
            sandbox.namespace(namespace)
        kubeconfig = sandbox.write_kubeconfig(folder / "kubeconfig")
        specs = folder / "specs"
        specs.mkdir(exist_ok=True)
        engine = Engine(kubeconfig, NAMESPACE, specs, IMAGE, dict(_SECRETS))
        yield Stage(sandbox, engine, Api.from_kubeconfig(kubeconfig))
