"""The demo's stage: one sandbox, one namespace, and the engine run on it as a user runs it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.api.model import Config
from engine.cli.printers.describe import describe
from engine.cluster.client import Client
from engine.cluster.connect import connect
from engine.errors import EngineError
from engine.package_data import resource_dir
from engine.reconcile.controller import ControllerDependencies
from engine.reconcile.once import RunOnce
from engine.reconcile.once_result import JobResult, OnceOptions, OnceResult
from engine.render.templates import Templates
from engine.sandbox import Sandbox
from engine.specdir.load import load_specs
from engine.telemetry.events import Event
from engine.telemetry.redact import Redactor
from engine.wellknown import JOB

NAMESPACE = "demo"
ENVIRONMENT: Mapping[str, str] = {
    "EXAMPLE_API_TOKEN": "a-token-that-nobody-sees",
    "EXAMPLE_REGISTRY_PASSWORD": "a-password-that-nobody-sees",
}


class StoryError(EngineError):
    """What the story promises did not happen."""


@dataclass(frozen=True, slots=True)
class Stage:
    """What a chapter plays with; `say` prints a line."""

    sandbox: Sandbox
    client: Client
    folder: Path
    say: Callable[[str], None]

    def example(self, name: str) -> Path:
        return resource_dir("examples") / name

    def run(self, paths: Sequence[Path], *, queue_timeout: float = 60.0) -> OnceResult:
        """`engine reconcile --once` over `paths`, each event as a line."""
        loaded = load_specs([str(path) for path in paths], Config(), NAMESPACE)
        redactor = Redactor()

        def tell(event: Event) -> None:
            line = redactor(describe(event, verbose=True))
            self.say(f"    {line}")

        options = OnceOptions("demo", timeout=60.0, queue_timeout=queue_timeout)
        dependencies = ControllerDependencies(ENVIRONMENT, redactor, tell)
        run = RunOnce(self.client, loaded.jobs, Config(), options, Templates(), dependencies)
        result = run.run()
        self.expect(not result.timed_out and not result.interrupted, "every job comes to its end")
        return result

    def expect(self, true: object, what: str) -> None:
        """Errors: StoryError, when what was told isn't so."""
        if not true:
            raise StoryError(f"the demo expected that {what}", hint="this is a defect: report it")

    def objects(self, kind: str, job: str) -> list[dict[str, Any]]:
        """The job's own objects of a kind, without its record."""
        return [
            item
            for item in self.sandbox.objects(kind, NAMESPACE)
            if (item["metadata"].get("labels") or {}).get(JOB) == job
            and not item["metadata"]["name"].endswith(".record")
        ]


def open_stage(sandbox: Sandbox, folder: Path, say: Callable[[str], None]) -> Stage:
    sandbox.namespace(NAMESPACE)
    kubeconfig = sandbox.write_kubeconfig(folder / "kubeconfig", namespace=NAMESPACE)
    return Stage(sandbox, connect(str(kubeconfig)).client, folder, say)


def only_job(result: OnceResult) -> JobResult:
    (job,) = result.jobs
    return job
