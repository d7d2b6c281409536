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
from engine.reconcile.once import JobResult, OnceRequest, RunOnce
from engine.reconcile.options import RunOptions
from engine.render.templates import Templates
from engine.sandbox import FOREVER, Clock, Run, Sandbox
from engine.specdir.load import load_specs
from engine.status.outcome import Reason
from engine.telemetry.events import Event, mask_event
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

    def run(self, *examples: str) -> Sequence[JobResult]:
        """`engine reconcile --once` over examples that are shipped, each event as a line."""
        paths = tuple(str(resource_dir("examples") / name) for name in examples)
        options = RunOptions(paths=paths, namespace=NAMESPACE, source="demo", timeout=60.0)
        redactor = Redactor()

        def print_event(event: Event) -> None:
            line = format_event(mask_event(event, redactor), verbose=True)
            self.print(f"    {sanitize_line(line)}")

        dependencies = ControllerDependencies(ENVIRONMENT, redactor, print_event)
        request = OnceRequest(
            client=self.client,
            jobs=load_specs(options, CONFIG).jobs,
            refused={},
            config=CONFIG,
            templates=Templates(),
            options=options,
        )
        result = RunOnce(request, dependencies).run()
        self.check(not result.timed_out and not result.interrupted, "every job comes to its end")
        return result.jobs

    def run_one(self, example: str, *outcomes: Reason) -> None:
        """The same over one example. Errors: DemoError unless its attempts end as `outcomes`."""
        (job,) = self.run(example)
        attempts = job.record.attempts if job.record else ()
        ends = tuple(attempt.outcome for attempt in attempts)
        self.check(ends == outcomes, f"the attempts end with {', '.join(outcomes)}")

    def check(self, true: object, what: str) -> None:
        """Errors: DemoError, when `what` was announced and isn't so."""
        if not true:
            raise DemoError(f"the demo expected that {what}", hint="this is a defect: report it")

    def wait(self, ready: Callable[[], bool], what: str) -> None:
        """Errors: DemoError, when it isn't so within 20 seconds."""
        deadline = time.monotonic() + 20.0
        while not ready():
            self.check(time.monotonic() < deadline, what)
            time.sleep(0.02)

    def objects(self, *kinds: str, job: str = "") -> list[dict[str, Any]]:
        """What there is of these kinds, of a job or of all, but for what Kubernetes makes."""
        found = (item for kind in kinds for item in self.sandbox.objects(kind, NAMESPACE))
        own = ((item["metadata"].get("labels", {}).get(JOB), item) for item in found)
        return [item for name, item in own if name and job in ("", name)]


def owner_references(env: DemoEnv) -> None:
    """Owned from birth: pod, then what it owns, then the record, and only then it runs."""
    env.sandbox.requests.clear()
    env.run_one("environment-files-secrets", Reason.SUCCEEDED)
    writes = env.sandbox.requests.writes[:5]
    for write in writes:
        env.print(f"    {write.verb:7} {write.resource}/{write.name}")
    steps = [(write.verb, write.resource) for write in writes]
    env.check(steps[0] == ("create", "pods") and steps[4] == ("patch", "pods"), "gate comes last")
    (pod,) = env.objects("pods")
    owned = [item for item in env.objects("secrets", "configmaps") if not _is_record(item)]
    owners = {item["metadata"]["ownerReferences"][0]["uid"] for item in owned}
    env.check(owners == {pod["metadata"]["uid"]}, "the pod owns Secret and ConfigMap")
    env.print(f"    Secret and ConfigMap are owned by pod {pod['metadata']['name']}")


def registry_outage(env: DemoEnv) -> None:
    """A registry outage survived: the next pull policy finds the image on the node."""
    env.sandbox.images.cache(BUSYBOX)
    env.sandbox.images.down("docker.io")
    env.print("    docker.io is down; the node has the image")
    env.run_one("fallback", Reason.IMAGE_PULL_FAILED, Reason.SUCCEEDED)
    env.sandbox.images.up("docker.io")


def deadline(env: DemoEnv) -> None:
    """A deadline: the job is ended when its timeout is over."""
    env.sandbox.node.will(Run(duration=FOREVER), pod="deadline-*")
    env.run_one("deadline", Reason.DEADLINE_EXCEEDED)


def quota_queue(env: DemoEnv) -> None:
    """A quota that opens: the job waits with nothing in the cluster but its record, then runs."""
    env.sandbox.quota(NAMESPACE, "demo-quota", pods="0")

    def open_it() -> None:
        left = [
            one for one in env.objects("pods", "configmaps", job="hello") if not _is_record(one)
        ]
        env.print(f"    objects of the queued job: {len(left)}; the quota opens now")
        env.sandbox.quota(NAMESPACE, "demo-quota", pods="100")

    opener = threading.Timer(1.0, open_it)
    opener.start()
    env.run_one("hello", Reason.SUCCEEDED)
    opener.join()


def ttl_prune(env: DemoEnv) -> None:
    """A TTL: two hours later the finished pods go, with all they own; the records stay."""
    env.sandbox.clock.advance(2 * 3600)

    def print_entry(entry: PruneEntry) -> None:
        if entry.action is PruneAction.DELETED:
            env.print(f"    {entry.ref}: deleted: {entry.reason}")

    result = prune(Deleter(env.client), PruneOptions(namespaces=(NAMESPACE,)), print_entry)
    env.check(result.exit_code == 0, "all that should go goes")

    def left() -> list[dict[str, Any]]:
        return env.objects("pods", "secrets", "configmaps")

    env.wait(lambda: all(map(_is_record, left())), "the pods go, with what they own")
    env.check(left(), "the records stay")
    env.print(f"    pods: 0, Secrets: 0; records: {len(left())}")


def unchanged(env: DemoEnv) -> None:
    """A second run changes nothing: finished jobs stay finished, although their pods are gone."""
    env.sandbox.requests.clear()
    jobs = env.run("environment-files-secrets", "fallback", "deadline", "hello")
    env.check(not any(job.changed for job in jobs), "no job changes")
    writes, count = len(env.sandbox.requests.writes), len(env.sandbox.requests)
    env.check(writes == 0, "nothing is written")
    env.print(f"    {len(jobs)} jobs, {count} requests, {writes} writes: nothing changed")


STEPS: tuple[Callable[[DemoEnv], None], ...] = (
    owner_references,
    registry_outage,
    deadline,
    quota_queue,
    ttl_prune,
    unchanged,
)


def _is_record(item: dict[str, Any]) -> bool:
    return str(item["metadata"]["name"]).endswith(".record")


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
        sandbox.namespace(NAMESPACE)
        kubeconfig = sandbox.write_kubeconfig(Path(folder, "kubeconfig"), namespace=NAMESPACE)
        demo = DemoEnv(sandbox, connect(str(kubeconfig)).client, _print)
        for number, step in enumerate(STEPS, start=1):
            click.echo(f"\n{number}. {(step.__doc__ or '').strip()}")
            step(demo)
    click.echo(f"\nEverything happened as described, in {time.monotonic() - began:.1f}s.")


def _print(line: str) -> None:
    """Workers print, too, and go on if the output is closed; the next step's title ends it."""
    with suppress(BrokenPipeError):
        click.echo(line)
