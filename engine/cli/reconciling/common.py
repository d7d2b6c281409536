"""What both ways of `engine reconcile` need."""

import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from engine.api.model import Config, Job
from engine.cli.crashes import report_crashes
from engine.cli.loading import load_config, load_valid_specs
from engine.cli.output import echo_note
from engine.cli.printers.event_printer import EventPrinter, make_event_printer
from engine.errors import EngineError, InvalidInputError, UsageError
from engine.telemetry.events import ErrorReported, Notice, SpecProblem
from engine.telemetry.redact import REDACTOR

if TYPE_CHECKING:
    from engine.cluster.connect import Connection


@dataclass(frozen=True, slots=True)
class ReconcileOptions:
    """What was asked on the command line: a field for each option. Times are seconds.

    Those with a default are what `engine diff` has no use for.
    """

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
    prune: bool
    allow_empty: bool
    dry_run: str
    output: str
    verbose: int
    sandbox: bool = False
    timeout: float | None = None
    queue_timeout: float = 0.0
    wait: str = "finished"
    max_starts: int | None = None
    logs_dir: Path | None = None
    junit: Path | None = None
    prune_interval: float = 0.0
    poll: float | None = None
    leader_elect: bool = False
    lease_duration: float = 0.0
    metrics_address: str = ""
    log_format: str = "text"


def load_whole_source(options: ReconcileOptions) -> tuple[Config, tuple[Job, ...], bool]:
    """The configuration, every job of the source, and whether there are no others for certain.

    Errors: InvalidInputError; UsageError where --prune would remove what may be meant to stay.
    """
    settings = load_config(options.config, options.kubernetes_schema, options.allow_secret_env)
    loaded = load_valid_specs(options.paths, settings, options.namespace, options.defaults_root)
    if options.prune and not loaded.complete:
        words = "--prune would remove the jobs behind a link that is not followed"
        raise UsageError(words, hint="name it on the command line, too, or remove it")
    if options.prune and not loaded.jobs and not options.allow_empty:
        hint = "--allow-empty, if that is meant"
        raise UsageError("there are no specs: --prune would remove every job", hint=hint)
    return settings, loaded.jobs, loaded.complete and bool(loaded.jobs or options.allow_empty)


def namespaces_of(options: ReconcileOptions, default: str, jobs: Iterable[Job]) -> tuple[str, ...]:
    """Where the source may have records, as far as the command line and the specs tell."""
    named = {default, options.namespace, *(job.namespace for job in jobs)}
    return tuple(sorted(named - {""}))


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
