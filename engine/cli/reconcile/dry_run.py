"""What a reconcile would do: `engine reconcile --dry-run` and `engine diff`."""

import os
import sys
from functools import partial

from engine.cli.output import echo, echo_error, echo_result, echo_stderr
from engine.cli.printers.plan import Plan, plan_diff, plan_json, plan_summary, plan_table
from engine.cli.reconcile import ReconcileOptions, make_request
from engine.errors import ExitCode
from engine.inspect.plan import Planner
from engine.lifecycle.attempt import RenderConfig
from engine.lifecycle.outdated import explain_outdated
from engine.prune.result import DryRun
from engine.telemetry.redact import REDACTOR
from engine.values import map_text


def print_plan(options: ReconcileOptions, *, as_diff: bool = False) -> None:
    """Print the next step of each job, or a unified diff of what would be written.

    Exits with the code of the worst error, or as a diff with 0, 1 or 2. Errors: InvalidInputError
    and UsageError, as a reconcile has them; ClusterError.
    """
    request = make_request(options)

    mode = DryRun(options.dry_run)
    planner = Planner(
        client=request.client,
        jobs={job.key: job for job in request.jobs},
        config=request.config,
        render_config=RenderConfig(request.templates, options.source, request.config.limits),
        environment=os.environ,
        redactor=REDACTOR,
        server_side=mode is DryRun.SERVER,
        concurrency=options.concurrency,
        records=request.options.records,
    )
    jobs = planner.plan(options.max_starts)
    pruned = planner.prune(mode, is_whole=request.is_whole, gone=request.gone)
    if planner.refusal is None and request.gone is not None:
        keys = request.gone.records.items
        planner.refusal = options.refuse_removals(keys, request.gone.jobs)
    codes = [job.error.exit_code for job in jobs if job.error is not None]
    code = max(*codes, pruned.exit_code, ExitCode.OK)
    if planner.refusal is not None:
        code = planner.refusal.exit_code
    plan = Plan(jobs, map_text(pruned, REDACTOR), planner.refusal)
    is_json = options.output == "json"
    form = partial(plan_diff, verbose=bool(options.verbose)) if as_diff else plan_table
    echo_result((plan_json if is_json else form)(plan), nl=is_json or not as_diff)
    notes = map("note: {}".format, planner.renames() if request.is_whole else ())
    for line in (*notes, *plan.pruned.lines):
        echo(line, err=True)
    if planner.refusal is not None:
        echo_error(planner.refusal)
    if words := explain_outdated((job.outdated for job in jobs), options.paths):
        echo(words, err=True)
    echo_stderr(plan_summary(plan))
    if as_diff and code:
        code = ExitCode.INVALID
    elif as_diff and plan.writes:
        code = ExitCode.JOB_FAILED
    sys.exit(code)
