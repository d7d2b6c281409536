"""`engine demo`: commands of the engine on the embedded cluster, and what they have done there."""

import os
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import click

from engine.cli import options
from engine.cli.main import cli
from engine.errors import EngineError, ExitCode
from engine.files import resource_dir
from engine.sandbox import FOREVER, Clock, Run, Sandbox
from engine.wellknown import JOB

NAMESPACE = "demo"
_SECRETS = {
    "EXAMPLE_API_TOKEN": "a-token-that-nobody-sees",
    "EXAMPLE_REGISTRY_PASSWORD": "a-password-that-nobody-sees",
}
_FIRST = "examples/environment-files-secrets --allow-secret-env EXAMPLE_*"


class DemoError(EngineError):
    """What a step announces did not happen."""


def _engine(arguments: str, ends: ExitCode = ExitCode.OK) -> None:
    """Run a command. Errors: DemoError unless it ends with this code."""
    click.echo(f"$ engine {arguments}")
    try:
        with cli.make_context("engine", arguments.split()) as context:
            cli.invoke(context)
    except SystemExit as end:
        if end.code != ends:
            words = f"the demo expected exit code {ends:d}, not {end.code}"
            raise DemoError(words, hint="this is a defect: report it") from None


def _count(sandbox: Sandbox, kind: str) -> int:
    """The engine's objects of a kind."""
    found = sandbox.objects(kind, NAMESPACE)
    return sum(JOB in one["metadata"].get("labels", {}) for one in found)


def owner_references(sandbox: Sandbox) -> None:
    """Owned from birth: pod, then what it owns, then the record, and only then it runs."""
    sandbox.requests.clear()
    _engine(f"reconcile --once -v {_FIRST}")
    for write in sandbox.requests.writes[:5]:
        click.echo(f"    {write.verb:7} {write.resource}/{write.name}")
    for secret in sandbox.objects("secrets", NAMESPACE):
        owner = secret["metadata"]["ownerReferences"][0]
        click.echo(f"    the Secret is owned by {owner['kind']} {owner['name']}")


def registry_outage(sandbox: Sandbox) -> None:
    """A registry outage survived: the next pull policy finds the image on the node."""
    sandbox.images.cache("docker.io/library/busybox:1.36")
    sandbox.images.down("docker.io")
    click.echo("    docker.io is down; the node has the image")
    _engine("reconcile --once -v examples/fallback")
    sandbox.images.up("docker.io")


def deadline(sandbox: Sandbox) -> None:
    """A deadline: the job is ended when its timeout is over."""
    sandbox.node.will(Run(duration=FOREVER), pod="deadline-*")
    _engine("reconcile --once -v examples/deadline", ExitCode.JOB_FAILED)


def quota_queue(sandbox: Sandbox) -> None:
    """A quota that opens: the job waits with nothing in the cluster but its record, then runs."""
    sandbox.quota(NAMESPACE, "demo-quota", pods="0")
    before = _count(sandbox, "pods")

    def open_it() -> None:
        pods = _count(sandbox, "pods") - before
        click.echo(f"    pods of the queued job: {pods}; the quota opens now")
        sandbox.quota(NAMESPACE, "demo-quota", pods="100")

    opener = threading.Timer(1.0, open_it)
    opener.start()
    _engine("reconcile --once -v examples/hello")
    opener.join()


def ttl_prune(sandbox: Sandbox) -> None:
    """A TTL: two hours later the finished pods go, with all they own; the records stay."""
    sandbox.clock.advance(2 * 3600)
    _engine("prune")
    late = time.monotonic() + 20.0
    while _count(sandbox, "secrets") and time.monotonic() < late:
        time.sleep(0.02)
    pods, secrets = _count(sandbox, "pods"), _count(sandbox, "secrets")
    click.echo(f"    pods: {pods}, Secrets: {secrets}; records: {_count(sandbox, 'configmaps')}")


def unchanged(sandbox: Sandbox) -> None:
    """A second run changes nothing: finished jobs stay finished, although their pods are gone."""
    sandbox.requests.clear()
    others = "examples/fallback examples/deadline examples/hello"
    _engine(f"reconcile --once -v {_FIRST} {others}", ExitCode.JOB_FAILED)
    requests = sandbox.requests
    click.echo(f"    {len(requests)} requests, {len(requests.writes)} writes")


STEPS: tuple[Callable[[Sandbox], None], ...] = (
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
        path = sandbox.write_kubeconfig(Path(folder, "kubeconfig"), namespace=NAMESPACE)
        for name in [name for name in os.environ if name.startswith("ENGINE_")]:
            del os.environ[name]  # the steps are the same for everybody
        os.environ.update({"KUBECONFIG": str(path), **_SECRETS})
        os.chdir(resource_dir("examples").parent)
        for number, step in enumerate(STEPS, start=1):
            click.echo(f"\n{number}. {(step.__doc__ or '').strip()}")
            step(sandbox)
    click.echo(f"\nEverything happened as described, in {time.monotonic() - began:.1f}s.")
