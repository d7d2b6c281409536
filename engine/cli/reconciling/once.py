"""`engine reconcile --once`: bring every job to its end, and leave with the exit code."""

import os
import signal
import sys
from dataclasses import replace
from itertools import count
from types import FrameType
from typing import TYPE_CHECKING

from engine.cli.output import echo, echo_result, tell
from engine.cli.printers.gitlab import log_section
from engine.cli.printers.result import exit_code, mask_result, result_json, result_table
from engine.cli.printers.table import wants_colour
from engine.cli.printers.text import pluralise
from engine.cli.reconciling.common import (
    ReconcileOptions,
    end_at_last,
    make_request,
    open_printer,
)
from engine.cli.reconciling.reports import open_reports
from engine.cli.signals import ending_signals
from engine.prune.result import PruneAction, PruneEntry, PruneReport
from engine.telemetry.events import Event, Progress
from engine.telemetry.redact import REDACTOR

if TYPE_CHECKING:
    from engine.reconcile.once_result import OnceResult


def run_once(options: ReconcileOptions) -> None:
    """Errors: InvalidInputError and UsageError before anything was written, ClusterError."""
    for number in ending_signals():
        signal.signal(number, _interrupt)
    with open_reports(options) as reports:
        result, pruned = _run(options)
        code = max(exit_code(result), pruned.exit_code)
        result, pruned = mask_result(result, pruned, REDACTOR)
        reports.report_result(result)
    if options.output == "json":
        echo_result(result_json(result, pruned))
    else:
        colour = wants_colour(options.color, sys.stdout)
        echo_result(result_table(result, pruned, colour=colour), color=colour)
    for line in pruned.lines:
        echo(line, err=True)
    under_way = sum(not job.over for job in result.jobs)
    told = f"{under_way} job{' is' if under_way == 1 else 's are'} not over"
    if result.interrupted:
        text = f"interrupted: {told}; what has started goes on, and the next reconcile takes it up"
        tell(text)
    elif result.timed_out:
        tell(f"timeout: {told}; what has started goes on")
    sys.exit(code)


def _run(options: ReconcileOptions) -> "tuple[OnceResult, PruneReport]":
    request = make_request(options)

    # Valid specs come first, and need no client.
    from engine.reconcile.controller import ControllerDependencies  # noqa: PLC0415
    from engine.reconcile.failure_logs import FailureLogs  # noqa: PLC0415
    from engine.reconcile.once import RunOnce  # noqa: PLC0415

    environment = os.environ if options.log_format == "text" else {}
    header = f"engine reconcile: {pluralise(len(request.jobs), 'job')}"
    with (
        log_section("engine_reconcile", header, environment),
        open_printer(options, len(request.jobs)) as printer,
    ):
        failures = FailureLogs(request.client)

        def emit(event: Event) -> None:
            failures(event)
            printer(event)

        run = RunOnce(request, ControllerDependencies(os.environ, REDACTOR, emit))
        result, pruned = failures.add_to(run.run()), PruneReport()
        if result.interrupted:
            return result, pruned
        deleted = count(1)

        def show_deleted(entry: PruneEntry) -> None:
            if entry.action is PruneAction.DELETED:
                printer(Progress(f"pruning: {next(deleted):,} deleted"))

        try:
            pruned = run.jobs.prune(logs_dir=options.logs_dir, on_entry=show_deleted)
        except KeyboardInterrupt:
            return replace(result, interrupted=True), pruned
    return result, pruned


def _interrupt(number: int, frame: FrameType | None) -> None:
    del number, frame
    end_at_last()
    raise KeyboardInterrupt
