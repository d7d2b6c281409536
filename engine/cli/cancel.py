"""`engine cancel`: end jobs by name."""

from typing import Any

from engine.cli import options
from engine.cli.by_name import Selection, connect_to_write, current_user
from engine.errors import UsageError
from engine.inspect.view import jobs_on_node
from engine.lifecycle.record import Record
from engine.reconcile.job_requests import cancel_job, is_half_cancelled


@options.verb(
    'engine cancel ci/build --reason "wrong branch"',
    "engine cancel -A --node node-1 --dry-run",
    "engine cancel --all --source web -n ci --dry-run",
    params=(
        *options.SELECTED_JOBS,
        options.flag("--all", "every", "All jobs of --source, or of -l, not yet over."),
        options.NODE,
        options.option("--reason", "Why; goes into the record.", default=""),
        options.CLIENT_DRY_RUN,
        *options.CLUSTER,
    ),
)
def command(every: bool, node: str, reason: str, dry_run: bool, **selected: Any) -> None:
    """End jobs by name.

    The records of JOBS say who cancelled them, and why; then their pods are deleted. A job that is
    over stays as it is, and so does one whose rerun has not begun; a pod that an earlier cancel
    left running is deleted. A cancelled job doesn't run again until its spec changes or
    `engine rerun`, or `reconcile --once --rerun-failed`, asks for it. With --node those whose pods
    are on that node: what holds its drain ends.
    """
    message = f"cancelled by {current_user()}" + (f": {reason}" if reason else "")
    selection = Selection(**selected)
    selection.require("--all, --node", every=every or node)
    if every and not (selection.source or selection.selector):
        words = "--all needs --source or -l: other sources may have jobs here, too"
        raise UsageError(words, hint="engine status shows the jobs")
    connection = connect_to_write()
    client, places = connection.client, selection.namespaces(connection.namespace)
    on_node = jobs_on_node(client, places, node) if node else None

    def wanted(record: Record) -> bool:
        if on_node is not None and record.key not in on_node:
            return False
        return not record.state.is_final or is_half_cancelled(client, record)

    selection.ask(connection, wanted, lambda key: cancel_job(client, key, message, dry_run=dry_run))
