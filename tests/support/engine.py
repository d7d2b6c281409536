"""Drive the engine as a user does: spec files in a folder, the command line, its output."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any, Self

from tests.support.api import Api, ApiError
from tests.support.forked import ForkedProcess

COMMAND = [sys.executable, "-m", "engine"]
Process = subprocess.Popen[str] | ForkedProcess


@dataclass(frozen=True)
class CommandResult:
    """One finished invocation."""

    code: int
    stdout: str
    stderr: str

    def ended(self, code: int | None) -> Self:
        """Itself. Errors: AssertionError with what was said, if it ended otherwise."""
        assert code in (None, self.code), f"{self.code}: {self.stderr}"
        return self

    @property
    def lines(self) -> list[str]:
        """What was said of the work, line by line."""
        return self.stderr.splitlines()

    @property
    def result(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.stdout)
        return found

    def job(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = next(j for j in self.result["jobs"] if j["name"] == name)
        return found


@dataclass
class Engine:
    """The command line against one cluster, with a folder of specs in one namespace."""

    kubeconfig: Path
    namespace: str
    folder: Path
    image: str
    environment: dict[str, str] = field(default_factory=dict)
    command: Sequence[str] = tuple(COMMAND)
    """What runs the engine: this one, or an earlier release."""
    started: list[Process] = field(default_factory=list)
    objects: bool = False
    """Whether specs are JobSpec objects, and not files."""

    def spec(self, name: str, /, *, file: str = "", **spec: Any) -> str:
        """Write a spec into the folder; JSON is YAML too. Returns the job's name."""
        document = {
            "apiVersion": "jobs.engine/v1alpha1",
            "kind": "JobSpec",
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": {"image": self.image, **spec},
        }
        if self.objects:
            self.apply(document)
        else:
            self.write(file or f"{name}.yaml", json.dumps(document, ensure_ascii=False))
        return name

    @property
    def place(self) -> list[str]:
        """Where reconcile finds the specs."""
        from_cluster = ["--from-cluster", "-n", self.namespace, "--allow-empty"]
        return from_cluster if self.objects else [str(self.folder)]

    def apply(self, document: dict[str, Any]) -> None:
        """The object as a user would have it."""
        api, name = Api.from_kubeconfig(self.kubeconfig), document["metadata"]["name"]
        plural = f"jobs.engine/v1alpha1/{document['kind'].lower().removesuffix('s')}s"
        for _ in range(10):
            found = api.find(plural, name, self.namespace)
            try:
                if found is None:
                    api.create(plural, document, self.namespace)
                else:
                    version = {"resourceVersion": found["metadata"]["resourceVersion"]}
                    metadata = document["metadata"] | version
                    api.replace(plural, document | {"metadata": metadata}, self.namespace)
            except ApiError as error:
                if error.status != HTTPStatus.CONFLICT:
                    raise
            else:
                return
        raise AssertionError(f"{name} keeps changing")

    def write(self, file: str, text: str) -> Path:
        path = self.folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def run(self, *arguments: str, timeout: float = 120, ends: int | None = None) -> CommandResult:
        """Errors: AssertionError with what was said, if it doesn't end with this exit code."""
        process = self.process(*arguments)
        try:
            return finish(process, timeout, ends)
        except subprocess.TimeoutExpired:
            kill(process)
            raise

    def reconcile(
        self, *arguments: str, timeout: float = 120, ends: int | None = None
    ) -> CommandResult:
        command = ("reconcile", "--once", *self.place, "-o", "json", *arguments)
        return self.run(*command, timeout=timeout, ends=ends)

    def start(self, *arguments: str) -> Process:
        """The same in the background; the caller waits for it or kills it."""
        command = ("reconcile", "--once", *self.place, "-o", "json", *arguments)
        return self.begin(*command)

    def begin(
        self, *arguments: str, stdout: int = subprocess.PIPE, stderr: int = subprocess.PIPE
    ) -> Process:
        """Any command in the background."""
        process = self.process(*arguments, stdout=stdout, stderr=stderr)
        self.started.append(process)
        return process

    def process(
        self, *arguments: str, stdout: int = subprocess.PIPE, stderr: int = subprocess.PIPE
    ) -> Process:
        """A command that the caller ends."""
        env = self.environment_of_process()
        if [*self.command] == COMMAND and "PYTHONPATH" not in self.environment:
            return ForkedProcess(arguments, env, stdout=stdout, stderr=stderr)
        return subprocess.Popen(
            [*self.command, *arguments],
            stdout=stdout,
            stderr=stderr,
            stdin=subprocess.DEVNULL,
            text=True,
            env=env,
        )

    def kill_what_runs(self) -> None:
        """At the end of a test, however it ended: an engine left behind would disturb the next."""
        for process in self.started:
            if process.returncode is None:
                kill(process)

    def status(self) -> dict[str, dict[str, Any]]:
        """Entries of `engine status` by job."""
        run = self.run("status", "-n", self.namespace, "-o", "json", ends=0)
        return {entry["name"]: entry for entry in run.result["jobs"]}

    def environment_of_process(self) -> Mapping[str, str]:
        foreign = ("ENGINE_", "GITHUB_", "GITLAB_", "CI_")
        kept = {k: v for k, v in os.environ.items() if not k.startswith(foreign)}
        return {**kept, "KUBECONFIG": str(self.kubeconfig), **self.environment}


def finish(process: Process, timeout: float = 120, ends: int | None = None) -> CommandResult:
    stdout, stderr = process.communicate(timeout=timeout)
    return CommandResult(process.wait(), stdout, stderr).ended(ends)


def kill(process: Process) -> None:
    process.send_signal(signal.SIGKILL)
    process.communicate()
