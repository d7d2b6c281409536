"""`engine diff`: what a reconcile would write, and why."""

import sys
from typing import Any

from engine.cli import options
from engine.cli.verb import verb


@verb("engine diff jobs", "engine diff jobs --source web --prune -o json")
@options.paths
@options.reconciling
@options.concurrency("How many jobs are looked at at once.")
@options.prune
@options.allow_empty
@options.output("diff", "json")
@options.verbose
def command(paths: tuple[str, ...], filenames: tuple[str, ...], **given: Any) -> None:
    """Show what a reconcile would write, and why.

    For each job that would start, be replaced or go on: the reason, the next step, and its
    manifests, as the server would admit them, as a unified diff against those of the attempt
    before; then what would be pruned. Values of secrets are masked. Exit code 0 if a reconcile
    would write nothing, 1 if it would, 2 for an error.
    """
    from engine.cli.output import echo_error  # noqa: PLC0415 - for --help
    from engine.cli.reconcile.common import ReconcileOptions  # noqa: PLC0415
    from engine.cli.reconcile.dry_run import print_plan  # noqa: PLC0415
    from engine.errors import EngineError, ExitCode  # noqa: PLC0415

    if given["prune"]:
        options.require_own_source()
    paths = options.all_paths(paths, filenames)
    asked = ReconcileOptions(paths=paths, dry_run="server", **given)
    try:
        print_plan(asked, as_diff=True)
    except EngineError as error:
        echo_error(error)
        sys.exit(ExitCode.INVALID)
