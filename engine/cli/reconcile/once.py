"""`engine reconcile --once`: bring every job to its end, report, and leave with the exit code."""

import os
import sys
from contextlib import ExitStack
from pathlib import Path

import click
from msgspec.structs import replace

from engine.cli.main import on_ending_signals
from engine.cli.output import echo, echo_result, echo_stderr, pluralise, wants_colour
from engine.cli.printers import result as printing
from engine.cli.printers.events import open_printer
from engine.cli.reconcile import ReconcileOptions, make_request
from engine.errors import EngineError, ExitCode, UsageError
from engine.files import write_whole
from engine.lifecycle.max_starts import name_jobs
from engine.lifecycle.outdated import explain_outdated
from engine.prune.result import PruneResult
from engine.prune.source import GoneJobs
from engine.reconcile.controller import ControllerDependencies
from engine.reconcile.once import OnceResult, RunOnce
from engine.telemetry.events import Notice
from engine.telemetry.redact import REDACTOR


def run_once(options: ReconcileOptions) -> None:
    """Errors: InvalidInputError and UsageError before anything was written, ClusterError."""
    opened = ExitStack()

    def interrupt(number: int) -> None:
        raise KeyboardInterrupt(number)

    received = on_ending_signals(interrupt, opened.close)
    ended: OnceResult | EngineError = EngineError("ended before there was a result")
    try:
        request = make_request(options)
        if request.gone is not None:
            _confirm(options, request.gone)
        jobs = len(request.jobs)
        with opened, open_printer(options.verbose, options.log_format, jobs) as printer:
            opened.callback(printer.close)
            logs = None
            if options.logs_dir is not None:
                from engine.cluster.logs import LogArchive  # noqa: PLC0415 - if needed

                logs = LogArchive(options.logs_dir, REDACTOR)
            run = RunOnce(request, ControllerDependencies(os.environ, REDACTOR, printer, logs=logs))
            result, pruned = run.run(), PruneResult()
            try:
                if not result.interrupted:
                    pruned = run.prune()
            except KeyboardInterrupt:
                result = replace(result, interrupted=True)
            if words := explain_outdated((job.outdated for job in result.jobs), options.paths):
                printer(Notice(words))
        invalid = ExitCode.INVALID if request.refused else ExitCode.OK
        code = max(printing.exit_code(result), pruned.exit_code, invalid)
        result, pruned = printing.mask_result(result, pruned, REDACTOR)
        ended = result
    except EngineError as error:
        ended = error.map_text(REDACTOR)
        raise
    finally:
        if options.junit is not None:
            _write_report(options.junit, ended)
    if options.output == "json":
        echo_result(printing.result_json(result, pruned))
    else:
        colour = wants_colour(sys.stdout)
        echo_result(printing.result_table(result, pruned, colour=colour), color=colour)
    for line in pruned.lines:
        echo(line, err=True)
    if result.interrupted or result.timed_out:
        echo_stderr(printing.interruption(result))
    sys.exit(128 + received[0] if result.interrupted and received else code)


def _confirm(options: ReconcileOptions, gone: GoneJobs) -> None:
    """Ask before jobs are removed, on a terminal; elsewhere the brake answers.

    Errors: UsageError where they are not to be removed: nothing was written.
    """
    keys = gone.records.items
    is_asked = not options.yes and options.max_removals is None
    if keys and is_asked and sys.stdin.isatty() and sys.stderr.isatty():
        count = f"{len(keys)} of the {pluralise(gone.jobs, 'job')} of source {options.source}"
        if not click.confirm(f"--prune removes {count}: {name_jobs(keys)}. Go on?", err=True):
            raise UsageError("nothing was removed, and nothing was started")
    elif refusal := options.refuse_removals(keys, gone.jobs):
        raise refusal


def _write_report(path: Path, ended: OnceResult | EngineError) -> None:
    """As JUnit XML; `ended` is masked. What can't be written is a warning: the exit code stays."""
    from engine.cli.printers.junit import junit_xml  # noqa: PLC0415 - rarely needed

    try:
        write_whole(path, junit_xml(ended))
    except OSError as error:
        words = error.strerror or error
        echo(f"warning: --junit {path}: can't be written: {words}", err=True)
