"""`engine demo`: steps on the embedded cluster; each checks that what it announces has happened."""

import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from engine.api.model import Config, Limits
from engine.cli import options
from engine.cli.output import sanitize_line
from engine.cli.printers.events import format_event
from engine.cluster.client import Client
from engine.cluster.connect import connect
from engine.errors import EngineError
from engine.files import resource_dir
from engine.prune.delete import Deleter
from engine.prune.result import PruneAction, PruneEntry
from engine.prune.run import PruneOptions, prune
from engine.reconcile.controller import ControllerDependencies
from engine.reconcile.once import RunOnce
from engine.reconcile.once import JobResult, OnceRequest, OnceResult
from engine.render.templates import Templates
from engine.sandbox import FOREVER, Clock, Run, Sandbox
from engine.sandbox.furnishing import ROOT_CERTIFICATE
from engine.specdir.load import load_specs
from engine.status.outcome import Reason, State
from engine.telemetry.events import Event, map_text
from engine.telemetry.redact import Redactor
from engine.wellknown import JOB

NAMESPACE = "demo"
ENVIRONMENT: Mapping[str, str] = {
    "EXAMPLE_API_TOKEN": "a-token-that-nobody-sees",
    "EXAMPLE_REGISTRY_PASSWORD": "a-password-that-nobody-sees",
}
CONFIG = Config(limits=Limits(allowed_secret_env=tuple(ENVIRONMENT)))
BUSYBOX = "docker.io/library/busybox:1.36"


class DemoError(EngineError):
    """What a step announces did not happen."""


@dataclass(frozen=True, slots=True)
class DemoEnv:
    """What a step works with: one sandbox, one namespace; `print` prints a line."""

    sandbox: Sandbox
    client: Client
    print: Callable[[str], None]

    def example(self, name: str) -> Path:
        """Folder of an example that is shipped."""
        return resource_dir("examples") / name

    def run(self, paths: Sequence[Path], *, queue_timeout: float = 60.0) -> OnceResult:
        """`engine reconcile --once` over `paths`, each event as a line."""
        loaded = load_specs([str(path) for path in paths], CONFIG, NAMESPACE)
        redactor = Redactor()

        def print_event(event: Event) -> None:
            line = format_event(map_text(event, redactor), verbose=True)
            self.print(f"    {sanitize_line(line)}")

        dependencies = ControllerDependencies(ENVIRONMENT, redactor, print_event)
        request = OnceRequest(
            client=self.client,
            jobs=loaded.jobs,
            config=CONFIG,
            templates=Templates(),
            source="demo",
            timeout=60.0,
            queue_timeout=queue_timeout,
        )
        result = RunOnce(request, dependencies).run()
        self.check(not result.timed_out and not result.interrupted, "every job comes to its end")
        return result

    def check(self, true: object, what: str) -> None:
        """Errors: DemoError, when `what` was announced and isn't so."""
        if not true:
            raise DemoError(f"the demo expected that {what}", hint="this is a defect: report it")

    def objects(self, kind: str, job: str) -> list[dict[str, Any]]:
        """The job's own objects of a kind, without its record."""
        return [
            item
            for item in self.sandbox.objects(kind, NAMESPACE)
            if (item["metadata"].get("labels") or {}).get(JOB) == job
            and not item["metadata"]["name"].endswith(".record")
        ]


def open_demo(sandbox: Sandbox, folder: Path, print_line: Callable[[str], None]) -> DemoEnv:
    """A demo on this sandbox, with a kubeconfig in `folder`."""
    sandbox.namespace(NAMESPACE)
    kubeconfig = sandbox.write_kubeconfig(folder / "kubeconfig", namespace=NAMESPACE)
    return DemoEnv(sandbox, connect(str(kubeconfig)).client, print_line)


def only_job(result: OnceResult) -> JobResult:
    """The result of a run of one job."""
    (job,) = result.jobs
    return job


def owner_references(env: DemoEnv) -> None:
    """Owned from birth: pod, then what it owns, then the record, and only then it runs."""
    env.sandbox.requests.clear()
    result = env.run([env.example("environment-files-secrets")])
    job = only_job(result)
    env.check(job.record and job.record.state is State.SUCCEEDED, "the job succeeds")
    for write in env.sandbox.requests.writes[:5]:
        env.print(f"    {write.verb:7} {write.resource}/{write.name}")
    steps = [(write.verb, write.resource) for write in env.sandbox.requests.writes[:5]]
    env.check(steps[0] == ("create", "pods") and steps[4] == ("patch", "pods"), "gate comes last")
    (pod,) = env.objects("pods", job.job.name)
    owned = [*env.objects("secrets", job.job.name), *env.objects("configmaps", job.job.name)]
    owners = {item["metadata"]["ownerReferences"][0]["uid"] for item in owned}
    env.check(owners == {pod["metadata"]["uid"]}, "the pod owns Secret and ConfigMap")
    env.print(f"    Secret and ConfigMap are owned by pod {pod['metadata']['name']}")


def registry_outage(env: DemoEnv) -> None:
    """A registry outage survived: the next pull policy finds the image on the node."""
    env.sandbox.images.cache(BUSYBOX)
    env.sandbox.images.down("docker.io")
    env.print("    docker.io is down; the node has the image")
    job = only_job(env.run([env.example("fallback")]))
    env.sandbox.images.up("docker.io")
    attempts = job.record.attempts if job.record else ()
    env.check(
        [attempt.outcome for attempt in attempts] == [Reason.IMAGE_PULL_FAILED, Reason.SUCCEEDED],
        "the second attempt runs",
    )


def deadline(env: DemoEnv) -> None:
    """A deadline: the job is ended when its timeout is over."""
    env.sandbox.node.will(Run(duration=FOREVER), pod="deadline-*")
    job = only_job(env.run([env.example("deadline")]))
    env.check(job.record and job.record.reason is Reason.DEADLINE_EXCEEDED, "the deadline ends it")


def quota_queue(env: DemoEnv) -> None:
    """A quota that opens: the job waits with nothing in the cluster but its record, then runs."""
    env.sandbox.quota(NAMESPACE, "demo-quota", pods="0")

    def open_it() -> None:
        time.sleep(1.0)
        left = env.objects("pods", "hello") + env.objects("configmaps", "hello")
        env.print(f"    objects of the queued job: {len(left)}; the quota opens now")
        env.sandbox.quota(NAMESPACE, "demo-quota", pods="100")

    opener = threading.Thread(target=open_it, daemon=True)
    opener.start()
    job = only_job(env.run([env.example("hello")]))
    opener.join()
    env.check(job.record and job.record.state is State.SUCCEEDED, "the queued job runs")


def ttl_prune(env: DemoEnv) -> None:
    """A TTL: two hours later the finished pods go, with all they own; the records stay."""
    env.sandbox.clock.advance(2 * 3600)

    def print_entry(entry: PruneEntry) -> None:
        if entry.action is PruneAction.DELETED:
            env.print(f"    {entry.ref}: deleted: {entry.reason}")

    result = prune(Deleter(env.client), PruneOptions(namespaces=(NAMESPACE,)), print_entry)
    env.check(result.exit_code == 0, "all that should go goes")
    _wait(env, lambda: not env.sandbox.objects("pods", NAMESPACE), "the pods are gone")
    _wait(env, lambda: not env.sandbox.objects("secrets", NAMESPACE), "the Secrets go along")

    def config_maps() -> set[str]:
        found = env.sandbox.objects("configmaps", NAMESPACE)
        return {item["metadata"]["name"] for item in found} - {ROOT_CERTIFICATE}

    _wait(env, lambda: all(name.endswith(".record") for name in config_maps()), "ConfigMaps, too")
    env.check(config_maps(), "the records stay")
    env.print(f"    pods: 0, Secrets: 0; records: {len(config_maps())}")


def unchanged(env: DemoEnv) -> None:
    """A second run changes nothing: finished jobs stay finished, although their pods are gone."""
    env.sandbox.requests.clear()
    names = ("environment-files-secrets", "fallback", "deadline", "hello")
    result = env.run([*map(env.example, names)])
    env.check(not any(job.changed for job in result.jobs), "no job changes")
    writes, count = len(env.sandbox.requests.writes), len(env.sandbox.requests)
    env.check(writes == 0, "nothing is written")
    env.print(f"    {len(result.jobs)} jobs, {count} requests, {writes} writes: nothing changed")


STEPS: tuple[Callable[[DemoEnv], None], ...] = (
    owner_references,
    registry_outage,
    deadline,
    quota_queue,
    ttl_prune,
    unchanged,
)


def _wait(env: DemoEnv, ready: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 20.0
    while not ready():
        env.check(time.monotonic() < deadline, what)
        time.sleep(0.02)


@options.verb("engine demo")
def command() -> None:
    """See the engine at work on a simulated cluster.

    It needs nothing but this package.
    """
    began = time.monotonic()
    click.echo("A Kubernetes API on loopback, with a simulated node: no container is run.")
    with (
        tempfile.TemporaryDirectory(prefix="engine-demo-") as folder,
        Sandbox(clock=Clock(speed=10.0)) as sandbox,
    ):
        demo = open_demo(sandbox, Path(folder), _print)
        for number, step in enumerate(STEPS, start=1):
            click.echo(f"\n{number}. {(step.__doc__ or '').strip()}")
            step(demo)
    click.echo(f"\nEverything happened as described, in {time.monotonic() - began:.1f}s.")


def _print(line: str) -> None:
    """Workers print, too, and go on if the output is closed; the next step's title ends it."""
    with suppress(BrokenPipeError):
        click.echo(line)
