"""`engine diff`: what a reconcile would write, and why."""

import sys
from typing import Any

from engine.cli import options
from engine.cli.verb import verb


@verb("engine diff jobs", "engine diff jobs --source web --prune -o json")
@options.paths
@options.reconciling
@options.concurrency("How many jobs are looked at at once.")
@options.option(
    "--dry-run",
    type=options.SharedChoice(["server", "client"]),
    default="server",
    show_default=True,
    help="server: compare with what the server would make of the manifests; client: with them.",
)
@options.prune
@options.allow_empty
@options.output("diff", "json")
@options.verbose
def command(paths: tuple[str, ...], filenames: tuple[str, ...], **given: Any) -> None:
    """Show what a reconcile would write, and why.

    For each job that would start, be replaced or go on: the reason, the steps, and its manifests as
    a unified diff against those of the attempt before; then what would be pruned. Values of secrets
    are masked. Exit code 0 if a reconcile would write nothing, 1 if it would, 2 for an error.
    """
    from engine.cli.output import echo_error  # noqa: PLC0415 - for --help
    from engine.cli.reconciling.common import ReconcileOptions  # noqa: PLC0415
    from engine.cli.reconciling.dry_run import print_diff  # noqa: PLC0415
    from engine.errors import EngineError, ExitCode  # noqa: PLC0415

    if given["prune"]:
        options.require_own_source()
    asked = ReconcileOptions(paths=options.all_paths(paths, filenames), **given)
    try:
        print_diff(asked)
    except EngineError as error:
        echo_error(error)
        sys.exit(ExitCode.INVALID)
