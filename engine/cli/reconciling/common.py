"""What both ways of `engine reconcile` need."""

import os
import resource
import signal
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from engine.api.model import Job
from engine.cli.crashes import report_crashes
from engine.cli.loading import SpecOptions, load_settings, load_valid_specs, require_specs
from engine.cli.output import echo_note, tell
from engine.cli.printers.event_printer import EventPrinter, make_event_printer
from engine.cli.printers.live_view import LiveView
from engine.errors import EngineError, ExitCode, InvalidInputError, UsageError
from engine.render.templates import Templates
from engine.specdir.load import with_namespace
from engine.telemetry.events import ErrorReported, Notice, SpecProblem
from engine.telemetry.redact import REDACTOR

if TYPE_CHECKING:
    from engine.cluster.connect import Connection
    from engine.reconcile.once_jobs import OnceRequest

_LONGEST_END = 15
"""Seconds; what ends in order has ten."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconcileOptions(SpecOptions):
    """What was asked on the command line: a field for each option. Times are seconds.

    Those with a default are what `engine diff` has no use for.
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


def make_request(options: ReconcileOptions) -> "OnceRequest":
    """What `--once`, and its dry run, are about: every job of the source, and where it is to run.

    Errors: InvalidInputError; UsageError where there are no specs, or --prune would remove what may
    be meant to stay; those of `open_connection`.
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
    from engine.reconcile.once_jobs import OnceRequest  # noqa: PLC0415
    from engine.reconcile.once_result import OnceOptions, WaitFor  # noqa: PLC0415

    connection = open_connection(options, loaded.jobs, options.concurrency + 4)
    jobs = with_namespace(loaded.jobs, connection.namespace, settings.limits)
    named = {connection.namespace, options.namespace, *(job.namespace for job in jobs)}
    once = OnceOptions(
        options.source,
        options.concurrency,
        options.timeout,
        options.queue_timeout,
        WaitFor(options.wait),
        options.max_starts,
        tuple(sorted(named - {""})) if options.prune else None,
    )
    return OnceRequest(
        connection.client,
        jobs,
        settings,
        once,
        Templates(options.templates, settings.kubernetes),
        is_whole=loaded.complete,
    )


@contextmanager
def open_printer(options: ReconcileOptions, jobs: int | None = None) -> Iterator[EventPrinter]:
    """Where events, and crashes, go: a live view of so many jobs, lines, or JSON lines."""
    printer = make_event_printer(
        REDACTOR,
        verbose=options.verbose,
        log_format=options.log_format,
        color=options.color,
        jobs=jobs,
    )
    with closing(printer), report_crashes(printer), _stopped_cleanly(printer):
        yield printer


@contextmanager
def _stopped_cleanly(printer: EventPrinter) -> Iterator[None]:
    """Ctrl-Z leaves a live view to put the terminal in order, where a shell has jobs at all."""
    if not isinstance(printer, LiveView) or signal.getsignal(signal.SIGTSTP) != signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTSTP, lambda *_: printer.stop_process())
    try:
        yield
    finally:
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)


def end_at_last() -> None:
    """End the process before long, whatever holds it up, such as an output that is full and that
    nobody reads. For the handler of a signal that ends it in order.
    """
    signal.signal(signal.SIGALRM, lambda *_: os._exit(ExitCode.INTERRUPTED))
    signal.alarm(_LONGEST_END)


def _raise_open_files_limit() -> None:
    """To the hard limit, as programs in Go do: each namespace is watched over connections of its
    own, and the soft limit, 1,024 in most places, is meant for programs that use select().
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
        tell("note: this is a simulated cluster; no container is run")
        yield str(running.write_kubeconfig(Path(folder, "kubeconfig")))
