"""A new run that is suspended doesn't begin; the run before it goes on to its own end."""

from engine.lifecycle.actions import Action, WriteRecord
from engine.lifecycle.rules.close_attempt import attempt_end, read_overdue, run_deadline
from engine.lifecycle.rules.replace_changed_run import remove_strays
from engine.lifecycle.state import LifecycleState
from engine.status.outcome import Outcome


def hold_new_run(state: LifecycleState) -> Action | None:
    """Only for a job that `limits.maxStarts` or its own `suspend` suspends."""
    record, run = state.record, state.run_record
    has_begun = run.state.is_final or run.attempts
    is_held = state.job.suspend or state.observed.refused
    if not (state.observed.suspended or (is_held and not has_begun)):
        return None
    if record is None or record.spec_hash == state.job.spec_hash:
        return state.wait()
    attempt = record.open_attempt
    if attempt is None:
        return remove_strays(state) or state.wait()
    end, pod = attempt_end(state, attempt), state.pod_of(attempt.uid)
    if end is None and pod is not None:
        end = read_overdue(state, pod)
    if isinstance(end, Outcome):
        return WriteRecord(record.with_attempt_closed(attempt, end, state.now))
    return end or state.wait(run_deadline(state, pod) if pod is not None else None)
