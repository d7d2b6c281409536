"""`engine demo`: the examples on the embedded cluster, and the story as it happens."""

import tempfile
import time
from pathlib import Path

import click


@click.command()
def command() -> None:
    """Show the engine at work on a simulated cluster; needs nothing but this package."""
    from engine.cli.story.chapters import CHAPTERS  # noqa: PLC0415 - --help needs no server
    from engine.cli.story.stage import open_stage  # noqa: PLC0415
    from engine.sandbox import Clock, Sandbox  # noqa: PLC0415

    began = time.monotonic()
    click.echo("A Kubernetes API on loopback, with a simulated node: no container is run.")
    with (
        tempfile.TemporaryDirectory(prefix="engine-demo-") as folder,
        Sandbox(clock=Clock(speed=10.0)) as sandbox,
    ):
        stage = open_stage(sandbox, Path(folder), click.echo)
        for number, chapter in enumerate(CHAPTERS, start=1):
            click.echo(f"\n{number}. {(chapter.__doc__ or '').strip()}")
            chapter(stage)
    click.echo(f"\nAll of it happened as told, in {time.monotonic() - began:.1f}s.")
