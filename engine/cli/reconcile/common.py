"""Options, request, connection and printer of every way of running `engine reconcile`."""

import resource
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import click

from engine.api.model import Job
from engine.cli.loading import SpecOptions, load_settings, load_valid_specs, require_specs
from engine.cli.main import report_crashes
from engine.cli.output import echo_note, echo_stderr
from engine.cli.printers.events import JsonPrinter, TextPrinter
from engine.cli.printers.table import can_redraw, wants_colour
from engine.errors import EngineError, InvalidInputError, UsageError
from engine.render.templates import Templates
from engine.specdir.load import with_namespace
from engine.telemetry.events import ErrorReported, Notice, SpecProblem
from engine.telemetry.redact import REDACTOR, Redactor
from engine.wellknown import DEFAULT_SOURCE

if TYPE_CHECKING:
    from engine.cli.printers.live_view import LiveView
    from engine.cluster.connect import Connection
    from engine.reconcile.once_result import OnceRequest

EventPrinter: TypeAlias = "TextPrinter | JsonPrinter | LiveView"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconcileOptions(SpecOptions):
    """A field for each option of the command line. Times are seconds.

    Fields with a default are those that `engine diff` has no option for.
    """

    kubeconfig: str
    context: str
    source: str
    concurrency: int
    prune: bool
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
    color: str = "auto"

    @property
    def reads_own_folders(self) -> bool:
        """Whether a missing spec means a removed job: whole folders, and a named source."""
        return self.source != DEFAULT_SOURCE and all(Path(path).is_dir() for path in self.paths)


def make_request(options: ReconcileOptions) -> "OnceRequest":
    """Every job of the source, and its cluster, for `--once` and its dry run.

    Errors: InvalidInputError; UsageError if there are no specs, or if --prune may remove jobs by
    mistake; those of `open_connection`.
    """
    settings = load_settings(options)
    loaded = load_valid_specs(options, settings)
    if options.prune and not loaded.complete:
        words = "--prune would remove the jobs behind a link that is not followed"
        raise UsageError(words, hint="name it on the command line, too, or remove it")
    if options.prune and not loaded.jobs and not options.allow_empty:
        hint = "--allow-empty, if that is meant"
        raise UsageError("there are no specs: --prune would remove every job", hint=hint)
    require_specs(options, loaded)

    # Valid specs come first, and need no client.
    from engine.reconcile.once_result import OnceRequest  # noqa: PLC0415

    connection = open_connection(options, loaded.jobs, options.concurrency + 4)
    jobs = with_namespace(loaded.jobs, connection.namespace, settings.limits)
    named = {connection.namespace, options.namespace, *(job.namespace for job in jobs)}
    return OnceRequest(
        client=connection.client,
        jobs=jobs,
        config=settings,
        templates=Templates(options.templates, settings.kubernetes),
        source=options.source,
        is_whole=loaded.complete and options.reads_own_folders,
        concurrency=options.concurrency,
        timeout=options.timeout,
        queue_timeout=options.queue_timeout,
        until_started=options.wait == "applied",
        max_starts=options.max_starts,
        prune_in=tuple(sorted(named - {""})) if options.prune else None,
    )


def make_event_printer(
    redact: Redactor,
    *,
    verbose: int,
    log_format: str = "text",
    color: str = "auto",
    jobs: int | None = None,
) -> EventPrinter:
    """The live view on a terminal, lines elsewhere and with -v; `json` is the same everywhere.

    `verbose` counts the -v: the second brings the tracebacks of internal errors. `jobs` is as in
    LiveView.
    """
    if log_format == "json":
        return JsonPrinter(sys.stderr, redact, verbose=verbose > 0)
    colour = wants_colour(color, sys.stderr)
    if not verbose and can_redraw():
        from engine.cli.printers.live_view import LiveView  # noqa: PLC0415 - rich is slow to import

        return LiveView(sys.stderr, redact, colour=colour, jobs=jobs)
    return TextPrinter(
        sys.stderr,
        redact,
        verbose=verbose > 0,
        colour=colour,
        terminal=sys.stderr.isatty(),
        tracebacks=verbose > 1,
    )


@contextmanager
def open_event_printer(
    options: ReconcileOptions, jobs: int | None = None
) -> Iterator[EventPrinter]:
    """The listener of events and crashes: a live view of so many jobs, lines, or JSON lines."""
    printer = make_event_printer(
        REDACTOR,
        verbose=options.verbose,
        log_format=options.log_format,
        color=options.color,
        jobs=jobs,
    )
    with closing(printer), report_crashes(printer):
        yield printer


def _raise_open_files_limit() -> None:
    """To the hard limit, as programs in Go do: each namespace is watched over its own connections.

    The soft limit, 1,024 on most systems, is meant for programs that use select().
    """
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def open_connection(
    options: ReconcileOptions, jobs: Iterable[Job], connections: int
) -> "Connection":
    """To the cluster, or to a sandbox for `jobs` that lives until the command ends.

    Errors: those of `connect`.
    """
    from engine.cluster.connect import connect  # noqa: PLC0415 - valid specs come first

    _raise_open_files_limit()
    kubeconfig, context = options.kubeconfig, options.context
    if options.sandbox:
        sandbox = _sandbox_kubeconfig(jobs)
        kubeconfig, context = click.get_current_context().with_resource(sandbox), ""
    return connect(kubeconfig, context, connections, _on_silence(options))


def _on_silence(options: ReconcileOptions) -> Callable[[str], None]:
    """Before the printer of events is there, and in its format."""
    if options.log_format != "json":
        return echo_note
    printer = JsonPrinter(sys.stderr, REDACTOR, verbose=options.verbose > 0)
    return lambda words: printer(Notice(words))


@contextmanager
def report_errors(options: ReconcileOptions) -> Iterator[None]:
    """With --log-format json an error that ends the command is reported in that format, too."""
    try:
        yield
    except EngineError as error:
        if options.log_format != "json":
            raise
        with open_event_printer(options) as emit:
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
        echo_stderr("note: this is a simulated cluster; no container is run")
        yield str(running.write_kubeconfig(Path(folder, "kubeconfig")))
