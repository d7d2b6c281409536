"""`engine cancel`: end jobs by name."""

from typing import Any

from engine.cli import options
from engine.cli.by_name import ask_selected, current_user
from engine.reconcile.job_requests import cancel_job


@options.verb(
    'engine cancel ci/build --reason "wrong branch"',
    "engine cancel --all -n ci",
    params=(
        *options.SELECTED_JOBS,
        options.option("--all", "every", is_flag=True, help="All jobs that are not over."),
        options.option("--reason", default="", help="Why; goes into the record."),
        *options.CLUSTER,
    ),
)
def command(reason: str, **given: Any) -> None:
    """End jobs by name.

    The records of JOBS say who cancelled them, and why; then their pods are deleted. A job that is
    over stays as it is. A cancelled job doesn't run again until its spec changes or
    `engine rerun` asks for it.
    """
    message = f"cancelled by {current_user()}" + (f": {reason}" if reason else "")
    ask_selected(
        "--all",
        lambda record: not record.state.is_final,
        lambda client, key: cancel_job(client, key, message),
        **given,
    )
