"""What a reconcile would do: `engine reconcile --dry-run` and `engine diff`."""

import os
import sys

import click

from engine.cli.output import echo, echo_result
from engine.cli.printers.plan import Plan, plan_code, plan_diff, plan_json, plan_summary, plan_table
from engine.cli.reconciling.common import (
    ReconcileOptions,
    load_whole_source,
    namespaces_of,
    open_connection,
    open_printer,
)
from engine.errors import ExitCode
from engine.prune.options import DryRun
from engine.render.templates import Templates
from engine.specdir.load import with_namespace
from engine.telemetry.redact import REDACTOR


def print_plan(options: ReconcileOptions) -> None:
    """Print what would become of each job, and leave with the worst error's exit code.

    Errors: those of `make_plan`.
    """
    plan, code = make_plan(options)
    echo_result((plan_json if options.output == "json" else plan_table)(plan))
    _print_rest(plan)
    sys.exit(code)


def print_diff(options: ReconcileOptions) -> None:
    """Print what would be written as a unified diff; exit code 1 if that is anything.

    Errors: those of `make_plan`.
    """
    plan, code = make_plan(options)
    if options.output == "json":
        echo_result(plan_json(plan))
    else:
        click.echo(plan_diff(plan), nl=False)
    _print_rest(plan)
    if code:
        sys.exit(ExitCode.INVALID)
    sys.exit(ExitCode.JOB_FAILED if plan.writes else ExitCode.OK)


def make_plan(options: ReconcileOptions) -> tuple[Plan, ExitCode]:
    """The plan, and the code of its worst error.

    Errors: InvalidInputError and UsageError, as a reconcile has them; ClusterError.
    """
    settings, jobs, is_whole = load_whole_source(options)

    # Valid specs come first, and need no client.
    from engine.prune.after_reconcile import Reconciled, prune_after_reconcile  # noqa: PLC0415
    from engine.reconcile.controller import ControllerDependencies  # noqa: PLC0415
    from engine.reconcile.dry_run import DryRunOnce, DryRunOptions  # noqa: PLC0415

    connection = open_connection(options, jobs, options.concurrency + 4)
    jobs = with_namespace(jobs, connection.namespace, settings.limits)
    mode = DryRun(options.dry_run)
    with open_printer(options) as printer:
        run = DryRunOnce(
            connection.client,
            jobs,
            settings,
            DryRunOptions(
                options.source,
                mode is DryRun.SERVER,
                options.concurrency,
                options.max_starts,
                namespaces_of(options, connection.namespace, jobs) if options.prune else None,
            ),
            Templates(options.templates, settings.kubernetes),
            ControllerDependencies(os.environ, REDACTOR, printer),
        )
        keys, pods = frozenset(job.key for job in jobs), run.pods
        plans = run.run()
        pruned = prune_after_reconcile(
            connection.client,
            settings,
            Reconciled(options.source, keys, is_whole, pods(), run.records()),
            run.gone,
            concurrency=options.concurrency,
            dry_run=mode,
        )
    plan = Plan(plans, pruned)
    return plan.map_text(REDACTOR), plan_code(plan)


def _print_rest(plan: Plan) -> None:
    for line in plan.pruned.lines:
        echo(line, err=True)
    click.echo(plan_summary(plan), err=True)
