"""`engine rerun`: run the same spec once more."""

from typing import Any

from engine.cli import options
from engine.cli.by_name import JobSelection
from engine.status.outcome import State


@options.verb(
    "engine rerun ci/build",
    "engine rerun --failed -n ci",
    params=(
        *options.SELECTED_JOBS,
        options.option("--failed", is_flag=True, help="All jobs whose last run has failed."),
        *options.CLUSTER,
    ),
)
def command(failed: bool, **given: Any) -> None:
    """Run jobs once more whose spec has not changed.

    JOBS must be over; the next reconcile starts the run.
    """
    from engine.reconcile.job_requests import rerun_job  # noqa: PLC0415 - --help needs no cluster

    states = {State.FAILED} if failed else {state for state in State if state.is_final}
    JobSelection(**given).ask_each(
        "--failed", lambda record: record.state in states, rerun_job, given=failed
    )
