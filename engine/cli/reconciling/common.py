"""What both ways of `engine reconcile` need."""

import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from engine.api.model import Job
from engine.cli.crashes import report_crashes
from engine.cli.output import echo_note
from engine.cli.printers.event_printer import EventPrinter, make_event_printer
from engine.errors import EngineError, InvalidInputError
from engine.telemetry.events import ErrorReported, Notice, SpecProblem
from engine.telemetry.redact import REDACTOR

if TYPE_CHECKING:
    from engine.cluster.connect import Connection


@dataclass(frozen=True, slots=True)
class ReconcileOptions:
    """What was asked on the command line: a field for each option. Times are seconds."""

    paths: tuple[str, ...]
    namespace: str
    kubeconfig: str
    context: str
    defaults_root: Path | None
    config: Path | None
    templates: Path | None
    kubernetes_schema: Path | None
    allow_secret_env: tuple[str, ...]
    source: str
    concurrency: int
    timeout: float | None
    queue_timeout: float
    wait: str
    max_starts: int | None
    prune: bool
    allow_empty: bool
    sandbox: bool
    logs_dir: Path | None
    output: str
    junit: Path | None
    prune_interval: float
    poll: float | None
    leader_elect: bool
    lease_duration: float
    metrics_address: str
    log_format: str
    verbose: int


@contextmanager
def open_printer(options: ReconcileOptions) -> Iterator[EventPrinter]:
    """Where events, and crashes, go: a live view, lines, or JSON lines, on stderr."""
    log_format = options.log_format
    printer = make_event_printer(REDACTOR, verbose=options.verbose, log_format=log_format)
    with closing(printer), report_crashes(printer):
        yield printer


def open_connection(
    options: ReconcileOptions, jobs: Iterable[Job], connections: int
) -> "Connection":
    """To the cluster, or to a sandbox for `jobs` that lives until the command ends.

    Errors: those of `connect`.
    """
    from engine.cluster.connect import connect  # noqa: PLC0415 - valid specs come first

    kubeconfig, context = options.kubeconfig, options.context
    if options.sandbox:
        sandbox = _sandbox_kubeconfig(jobs)
        kubeconfig, context = click.get_current_context().with_resource(sandbox), ""
    return connect(kubeconfig, context, connections, _on_silence(options))


def _on_silence(options: ReconcileOptions) -> Callable[[str], None]:
    """Before the printer of events is there, and in its format."""
    if options.log_format != "json":
        return echo_note
    printer = make_event_printer(REDACTOR, verbose=options.verbose, log_format="json")
    return lambda words: printer(Notice(words))


@contextmanager
def report_errors(options: ReconcileOptions) -> Iterator[None]:
    """With --log-format json an error that ends the command is reported in that format, too."""
    try:
        yield
    except EngineError as error:
        if options.log_format != "json":
            raise
        with open_printer(options) as emit:
            if isinstance(error, InvalidInputError):
                for problem in error.problems:
                    emit(SpecProblem(problem))
            else:
                emit(ErrorReported(None, str(error), retrying=False))
        sys.exit(error.exit_code)


@contextmanager
def _sandbox_kubeconfig(jobs: Iterable[Job]) -> Iterator[str]:
    """Path of the kubeconfig of a sandbox that has every namespace of `jobs`."""
    from engine.sandbox import Sandbox  # noqa: PLC0415 - only who asks for it pays for it

    with tempfile.TemporaryDirectory(prefix="engine-sandbox-") as folder, Sandbox() as running:
        for job in jobs:
            running.namespace(job.namespace or "default")
        click.echo("note: this is a simulated cluster; no container is run", err=True)
        yield str(running.write_kubeconfig(Path(folder, "kubeconfig")))
