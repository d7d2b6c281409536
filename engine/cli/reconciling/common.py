"""What both ways of `engine reconcile` need."""

import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from engine.api.model import Job
from engine.cli.printers.progress import Progress, progress
from engine.cli.reconciling.asked import Asked
from engine.errors import EngineError, InvalidInputError
from engine.telemetry.events import ErrorReported, SpecProblem
from engine.telemetry.redact import REDACTOR


def shown(asked: Asked) -> Progress:
    """Where events go: a live view, lines, or JSON lines, on stderr."""
    return progress(
        REDACTOR,
        verbose=asked.verbose,
        no_colour="NO_COLOR" in os.environ,
        log_format=asked.log_format,
    )


@contextmanager
def told_as_asked(asked: Asked) -> Iterator[None]:
    """With --log-format json an error that ends the command is told in that format, too."""
    try:
        yield
    except EngineError as error:
        if asked.log_format != "json":
            raise
        show = shown(asked)
        if isinstance(error, InvalidInputError):
            for problem in error.problems:
                show(SpecProblem(str(problem)))
        else:
            show(ErrorReported(None, str(error), retrying=False))
        sys.exit(error.exit_code)


@contextmanager
def sandbox_for(jobs: Iterable[Job]) -> Iterator[str]:
    """Path of the kubeconfig of a sandbox that has every namespace of `jobs`."""
    from engine.sandbox import Sandbox  # noqa: PLC0415 - only who asks for it pays for it

    with tempfile.TemporaryDirectory(prefix="engine-sandbox-") as folder, Sandbox() as running:
        for job in jobs:
            running.namespace(job.namespace or "default")
        click.echo("note: this is a simulated cluster; no container is run", err=True)
        yield str(running.write_kubeconfig(Path(folder, "kubeconfig")))
