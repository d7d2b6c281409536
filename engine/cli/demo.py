"""`engine demo`: the examples on the embedded cluster, each event as it happens."""

import tempfile
import time
from contextlib import suppress
from pathlib import Path

import click

from engine.cli.verb import verb


@verb("engine demo")
def command() -> None:
    """See the engine at work on a simulated cluster.

    It needs nothing but this package.
    """
    from engine.cli.demo_steps import STEPS, open_demo  # noqa: PLC0415 - --help needs no server
    from engine.sandbox import Clock, Sandbox  # noqa: PLC0415

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
    """For workers, too, who go on where nobody reads any more; the next step's title ends it."""
    with suppress(BrokenPipeError):
        click.echo(line)
