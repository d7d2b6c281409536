"""`engine diff`: what a reconcile would write, and why."""

import sys
from typing import Any

from engine.cli import options
from engine.cli.output import echo_error
from engine.cli.reconcile import ReconcileOptions
from engine.cli.reconcile.dry_run import print_plan
from engine.errors import EngineError, ExitCode


@options.verb(
    "engine diff jobs",
    "engine diff jobs --source web --prune -o json",
    params=(
        *options.PATHS,
        *options.RECONCILING,
        options.CONCURRENCY("How many jobs are looked at at once.", default=16),
        options.PRUNE,
        options.MAX_REMOVALS,
        options.ALLOW_EMPTY,
        options.output("diff", "json"),
        options.VERBOSE,
    ),
)
def command(**given: Any) -> None:
    """Show what a reconcile would write, and why.

    For each job that would start, be replaced or go on: the reason, the next step, and its
    manifests, as the server would admit them, as a unified diff against those of the attempt
    before; then what would be pruned. Of a job without an earlier pod -v prints the manifests.
    Values of secrets are masked. Exit code 0 if a reconcile would write nothing, 1 if it would, 2
    for an error.
    """
    if given["prune"]:
        options.require_whole_source(given["paths"])
    asked = ReconcileOptions(dry_run="server", **given)
    try:
        print_plan(asked, as_diff=True)
    except EngineError as error:
        echo_error(error)
        sys.exit(ExitCode.INVALID)
