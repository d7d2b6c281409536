"""A new run that is suspended doesn't begin; the run before it goes on to its own end."""

from engine.lifecycle.actions import Action
from engine.lifecycle.rules.close_attempt import see_through
from engine.lifecycle.rules.replace_changed_run import remove_strays
from engine.lifecycle.state import LifecycleState


def hold_new_run(state: LifecycleState) -> Action | None:
    """Only for a job that `limits.maxStarts` or its own `suspend` suspends."""
    record, run = state.record, state.run_record
    has_begun = run.state.is_final or run.attempts
    is_held = state.job.suspend or state.observed.refused
    if not (state.observed.suspended or (is_held and not has_begun)):
        return None
    if record is None or record.spec_hash == state.job.spec_hash:
        return state.wait()
    return see_through(state, record) or remove_strays(state) or state.wait()
