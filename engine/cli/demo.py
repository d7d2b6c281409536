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
from engine.reconcile.once import OnceRequest, RunOnce
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
class Demo:
    """What a step works with: one sandbox, one namespace."""

    sandbox: Sandbox
    client: Client

    def run(self, *examples: str, ends: Sequence[Reason]) -> None:
        """`engine reconcile --once` over examples that are shipped, each event as a line.

        Errors: DemoError unless all of their attempts end as `ends`.
        """
        paths = tuple(str(resource_dir("examples") / name) for name in examples)
        asked = RunOptions(paths=paths, namespace=NAMESPACE, source="demo", timeout=60.0)
        redactor = Redactor()

        def print_event(event: Event) -> None:
            _print(sanitize_line(format_event(mask_event(event, redactor), verbose=True)))

        jobs, templates = load_specs(asked, CONFIG).jobs, Templates()
        request = OnceRequest(self.client, jobs, {}, CONFIG, templates, asked)
        result = RunOnce(request, ControllerDependencies(ENVIRONMENT, redactor, print_event)).run()
        records = [job.record for job in result.jobs if job.record]
        found = [attempt.outcome for record in records for attempt in record.attempts]
        if found != [*ends]:
            words = (
                f"the demo expected the ends {', '.join(ends)}, not {', '.join(map(str, found))}"
            )
            raise DemoError(words, hint="this is a defect: report it")

    def objects(self, *kinds: str) -> list[dict[str, Any]]:
        """What the engine has made of these kinds."""
        found = (item for kind in kinds for item in self.sandbox.objects(kind, NAMESPACE))
        return [one for one in found if JOB in one["metadata"].get("labels", {})]

    def dependents(self) -> list[dict[str, Any]]:
        """What pods own."""
        found = self.objects("secrets", "configmaps")
        return [one for one in found if "ownerReferences" in one["metadata"]]


def owner_references(demo: Demo) -> None:
    """Owned from birth: pod, then what it owns, then the record, and only then it runs."""
    demo.sandbox.requests.clear()
    demo.run("environment-files-secrets", ends=[Reason.SUCCEEDED])
    for write in demo.sandbox.requests.writes[:5]:
        _print(f"{write.verb:7} {write.resource}/{write.name}")
    owners = {one["metadata"]["ownerReferences"][0]["name"] for one in demo.dependents()}
    _print(f"Secret and ConfigMap are owned by pod {', '.join(owners)}")


def registry_outage(demo: Demo) -> None:
    """A registry outage survived: the next pull policy finds the image on the node."""
    demo.sandbox.images.cache(BUSYBOX)
    demo.sandbox.images.down("docker.io")
    _print("docker.io is down; the node has the image")
    demo.run("fallback", ends=[Reason.IMAGE_PULL_FAILED, Reason.SUCCEEDED])
    demo.sandbox.images.up("docker.io")


def deadline(demo: Demo) -> None:
    """A deadline: the job is ended when its timeout is over."""
    demo.sandbox.node.will(Run(duration=FOREVER), pod="deadline-*")
    demo.run("deadline", ends=[Reason.DEADLINE_EXCEEDED])


def quota_queue(demo: Demo) -> None:
    """A quota that opens: the job waits with nothing in the cluster but its record, then runs."""
    demo.sandbox.quota(NAMESPACE, "demo-quota", pods="0")
    before = len(demo.objects("pods")) + len(demo.dependents())

    def open_it() -> None:
        count = len(demo.objects("pods")) + len(demo.dependents()) - before
        _print(f"objects of the queued job: {count}; the quota opens now")
        demo.sandbox.quota(NAMESPACE, "demo-quota", pods="100")

    opener = threading.Timer(1.0, open_it)
    opener.start()
    demo.run("hello", ends=[Reason.SUCCEEDED])
    opener.join()


def ttl_prune(demo: Demo) -> None:
    """A TTL: two hours later the finished pods go, with all they own; the records stay."""
    demo.sandbox.clock.advance(2 * 3600)

    def print_entry(entry: PruneEntry) -> None:
        if entry.action is PruneAction.DELETED:
            _print(f"{entry.ref}: deleted: {entry.reason}")

    prune(Deleter(demo.client), PruneOptions(namespaces=(NAMESPACE,)), print_entry)
    late = time.monotonic() + 20.0
    while demo.dependents() and time.monotonic() < late:
        time.sleep(0.02)
    pods, secrets, records = map(len, map(demo.objects, ("pods", "secrets", "configmaps")))
    _print(f"pods: {pods}, Secrets: {secrets}; records: {records}")


def unchanged(demo: Demo) -> None:
    """A second run changes nothing: finished jobs stay finished, although their pods are gone."""
    demo.sandbox.requests.clear()
    names = ("environment-files-secrets", "fallback", "deadline", "hello")
    ends = (Reason.DEADLINE_EXCEEDED, Reason.SUCCEEDED, Reason.IMAGE_PULL_FAILED)
    demo.run(*names, ends=(*ends, Reason.SUCCEEDED, Reason.SUCCEEDED))
    requests = demo.sandbox.requests
    _print(
        f"{len(names)} jobs, {len(requests)} requests, {len(requests.writes)} writes:"
        " nothing changed"
    )


STEPS: tuple[Callable[[Demo], None], ...] = (
    owner_references,
    registry_outage,
    deadline,
    quota_queue,
    ttl_prune,
    unchanged,
)


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
        demo = Demo(sandbox, connect(str(kubeconfig)).client)
        for number, step in enumerate(STEPS, start=1):
            click.echo(f"\n{number}. {(step.__doc__ or '').strip()}")
            step(demo)
    click.echo(f"\nEverything happened as described, in {time.monotonic() - began:.1f}s.")


def _print(line: str) -> None:
    """Workers print, too, and go on if the output is closed; the next step's title ends it."""
    with suppress(BrokenPipeError):
        click.echo(f"    {line}")
