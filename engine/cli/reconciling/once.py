"""`engine reconcile --once`: bring every job to its end, and leave with the exit code."""

import os
import signal
import sys
from dataclasses import replace
from types import FrameType
from typing import TYPE_CHECKING

import click

from engine.cli.output import echo, echo_result
from engine.cli.printers.gitlab import log_section
from engine.cli.printers.result import exit_code, mask_result, result_json, result_table
from engine.cli.printers.text import pluralise
from engine.cli.reconciling.common import (
    ReconcileOptions,
    load_whole_source,
    namespaces_of,
    open_connection,
    open_printer,
)
from engine.cli.reconciling.reports import open_reports
from engine.prune.result import PruneReport
from engine.render.templates import Templates
from engine.specdir.load import with_namespace
from engine.telemetry.events import Event
from engine.telemetry.redact import REDACTOR

if TYPE_CHECKING:
    from engine.reconcile.once_result import OnceResult


def run_once(options: ReconcileOptions) -> None:
    """Errors: InvalidInputError and UsageError before anything was written, ClusterError."""
    signal.signal(signal.SIGTERM, _interrupt)
    with open_reports(options) as reports:
        result, pruned = _run(options)
        code = max(exit_code(result), pruned.exit_code)
        result, pruned = mask_result(result, pruned, REDACTOR)
        reports.report_result(result)
    echo_result((result_json if options.output == "json" else result_table)(result, pruned))
    for line in pruned.lines:
        echo(line, err=True)
    under_way = sum(not job.over for job in result.jobs)
    told = f"{under_way} job{' is' if under_way == 1 else 's are'} not over"
    if result.interrupted:
        text = f"interrupted: {told}; what has started goes on, and the next reconcile takes it up"
        click.echo(text, err=True)
    elif result.timed_out:
        click.echo(f"timeout: {told}; what has started goes on", err=True)
    sys.exit(code)


def _run(options: ReconcileOptions) -> "tuple[OnceResult, PruneReport]":
    settings, jobs, is_whole = load_whole_source(options)

    # Valid specs come first, and need no client.
    from engine.prune.after_reconcile import Reconciled, prune_after_reconcile  # noqa: PLC0415
    from engine.reconcile.controller import ControllerDependencies  # noqa: PLC0415
    from engine.reconcile.failure_logs import FailureLogs  # noqa: PLC0415
    from engine.reconcile.once import RunOnce  # noqa: PLC0415
    from engine.reconcile.once_result import OnceOptions, WaitFor  # noqa: PLC0415

    connection = open_connection(options, jobs, options.concurrency + 4)
    jobs = with_namespace(jobs, connection.namespace, settings.limits)
    once = OnceOptions(
        options.source,
        options.concurrency,
        options.timeout,
        options.queue_timeout,
        WaitFor(options.wait),
        options.max_starts,
        namespaces_of(options, connection.namespace, jobs) if options.prune else None,
    )
    templates = Templates(options.templates, settings.kubernetes)
    environment = os.environ if options.log_format == "text" else {}
    header = f"engine reconcile: {pluralise(len(jobs), 'job')}"
    with log_section("engine_reconcile", header, environment), open_printer(options) as printer:
        failures = FailureLogs(connection.client)

        def emit(event: Event) -> None:
            failures(event)
            printer(event)

        dependencies = ControllerDependencies(os.environ, REDACTOR, emit)
        run = RunOnce(connection.client, jobs, settings, once, templates, dependencies)
        result, pruned = failures.add_to(run.run()), PruneReport()
        if result.interrupted:
            return result, pruned
        keys = frozenset(job.key for job in jobs)
        try:
            pruned = prune_after_reconcile(
                connection.client,
                settings,
                Reconciled(options.source, keys, is_whole, run.pods(), run.records()),
                run.gone,
                concurrency=options.concurrency,
                logs_dir=options.logs_dir,
            )
        except KeyboardInterrupt:
            return replace(result, interrupted=True), pruned
    return result, pruned


def _interrupt(number: int, frame: FrameType | None) -> None:
    del number, frame
    raise KeyboardInterrupt
