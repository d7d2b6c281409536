"""What a reconcile would do: `engine reconcile --dry-run` and `engine diff`."""

import os
import sys

from engine.cli.output import echo, echo_error, echo_result, tell
from engine.cli.printers.plan import Plan, plan_code, plan_diff, plan_json, plan_summary, plan_table
from engine.cli.reconciling.common import ReconcileOptions, make_request, open_printer
from engine.errors import ExitCode
from engine.prune.options import DryRun
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
        echo_result(plan_diff(plan), nl=False)
    _print_rest(plan)
    if code:
        sys.exit(ExitCode.INVALID)
    sys.exit(ExitCode.JOB_FAILED if plan.writes else ExitCode.OK)


def make_plan(options: ReconcileOptions) -> tuple[Plan, ExitCode]:
    """The plan, and the code of its worst error.

    Errors: InvalidInputError and UsageError, as a reconcile has them; ClusterError.
    """
    request = make_request(options)

    # Valid specs come first, and need no client.
    from engine.reconcile.controller import ControllerDependencies  # noqa: PLC0415
    from engine.reconcile.dry_run import DryRunOnce  # noqa: PLC0415

    mode = DryRun(options.dry_run)
    with open_printer(options) as printer:
        dependencies = ControllerDependencies(os.environ, REDACTOR, printer)
        run = DryRunOnce(request, dependencies, server_side=mode is DryRun.SERVER)
        plan = Plan(run.run(), run.prune(mode), run.refusal)
    return plan.map_text(REDACTOR), plan_code(plan)


def _print_rest(plan: Plan) -> None:
    for line in plan.pruned.lines:
        echo(line, err=True)
    if plan.refusal is not None:
        echo_error(plan.refusal)
    tell(plan_summary(plan))
