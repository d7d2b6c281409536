"""`engine rerun`: run the same spec once more."""

from typing import Any

from engine.cli import options
from engine.cli.by_name import ask_selected
from engine.reconcile.job_requests import rerun_job
from engine.status.outcome import State


@options.verb(
    "engine rerun ci/build",
    "engine rerun --failed -n ci",
    params=(
        *options.SELECTED_JOBS,
        options.option("--failed", "every", is_flag=True, help="All jobs whose last run failed."),
        *options.CLUSTER,
    ),
)
def command(every: bool, **given: Any) -> None:
    """Run jobs once more whose spec has not changed.

    JOBS must be over; the next reconcile starts the run.
    """
    states = {State.FAILED} if every else {state for state in State if state.is_final}
    ask_selected("--failed", lambda record: record.state in states, rerun_job, every=every, **given)
