"""`engine reconcile --once`: bring every job to its end, and leave with the exit code."""

import os
import signal
import sys
from types import FrameType

import click

from engine.cli.loading import load_config, load_valid_specs
from engine.cli.printers.result import exit_code, result_json, result_table
from engine.cli.reconciling.asked import Asked
from engine.cli.reconciling.common import sandbox_for, shown
from engine.errors import UsageError
from engine.prune.result import PruneReport
from engine.render.templates import Templates
from engine.specdir.load import with_namespace
from engine.telemetry.redact import REDACTOR


def run_once(asked: Asked) -> None:
    """Errors: InvalidInputError and UsageError before anything was written, ClusterError."""
    settings = load_config(asked.config, asked.kubernetes_schema)
    jobs = load_valid_specs(asked.paths, settings, asked.namespace).jobs
    if asked.prune and not jobs and not asked.allow_empty:
        hint = "--allow-empty, if that is meant"
        raise UsageError("there are no specs: --prune would remove every job", hint=hint)

    from engine.cluster.connect import connect  # noqa: PLC0415 - valid specs come first
    from engine.prune.after_reconcile import prune_after_reconcile  # noqa: PLC0415
    from engine.reconcile.controller import ControllerDependencies  # noqa: PLC0415
    from engine.reconcile.once import RunOnce  # noqa: PLC0415
    from engine.reconcile.once_result import OnceOptions, WaitFor  # noqa: PLC0415

    kubeconfig, context = asked.kubeconfig, asked.context
    if asked.sandbox:
        kubeconfig, context = click.get_current_context().with_resource(sandbox_for(jobs)), ""
    connection = connect(kubeconfig, context, connections=asked.concurrency + 4)
    jobs = with_namespace(jobs, connection.namespace, settings.limits)
    show = shown(asked)
    once = OnceOptions(
        asked.source, asked.concurrency, asked.timeout, asked.queue_timeout, WaitFor(asked.wait)
    )
    templates = Templates(asked.templates, settings.kubernetes)
    dependencies = ControllerDependencies(os.environ, REDACTOR, show)
    run = RunOnce(connection.client, jobs, settings, once, templates, dependencies)
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        result, pruned = run.run(), PruneReport()
        if not result.interrupted:
            keys = frozenset(job.key for job in jobs)
            places = {connection.namespace, asked.namespace, *(key.namespace for key in keys)} - {
                ""
            }
            pruned = prune_after_reconcile(
                connection.client, settings, asked.source, run.pods(), keys, sorted(places),
                concurrency=asked.concurrency, remove_jobs=asked.prune,
            )  # fmt: skip
    finally:
        show.close()
    printed = result_json if asked.output == "json" else result_table
    click.echo(printed(result, REDACTOR, pruned))
    for told in pruned.lines:
        click.echo(told, err=True)
    under_way = sum(not job.over for job in result.jobs)
    told = f"{under_way} job{' is' if under_way == 1 else 's are'} not over"
    if result.interrupted:
        text = f"interrupted: {told}; what has started goes on, and the next reconcile takes it up"
        click.echo(text, err=True)
    elif result.timed_out:
        click.echo(f"timeout: {told}; what has started goes on", err=True)
    sys.exit(max(exit_code(result), pruned.exit_code))


def _interrupt(number: int, frame: FrameType | None) -> None:
    del number, frame
    raise KeyboardInterrupt
