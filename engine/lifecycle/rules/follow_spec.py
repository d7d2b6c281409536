"""The record follows its spec: it ages no longer once the spec is back, and says that another run
is to begin, or may not. The status of an object follows every edit.
"""

from msgspec.structs import replace

from engine.lifecycle.actions import Action, WriteRecord
from engine.lifecycle.rules.close_attempt import see_through
from engine.lifecycle.rules.replace_changed_run import remove_strays
from engine.lifecycle.state import LifecycleState
from engine.wellknown import ORPHANED_SINCE

SUSPENDED = "spec.suspend is true"


def follow_spec(state: LifecycleState) -> Action | None:
    """The orphan mark comes first, so that the record isn't deleted meanwhile."""
    record = state.record
    is_marked = record is not None and ORPHANED_SINCE in record.annotations
    if record is not None and is_marked and record.version not in state.observed.given_up:
        kept = {k: v for k, v in record.annotations.items() if k != ORPHANED_SINCE}
        return WriteRecord(replace(record, annotations=kept))
    return _record_edit(state) or _hold_new_run(state)


def _record_edit(state: LifecycleState) -> WriteRecord | None:
    """Only for a JobSpec object, and for a job that is suspended.

    The first write of any other job is that of its attempt. A run that is under way ends first.
    """
    job, record, observed = state.job, state.record, state.observed
    if observed.refused:
        return None
    if not observed.suspended and (record is None or record.open_attempt is None):
        run = state.run_record
        if job.suspend:
            has_begun = run.attempts or run.state.is_final
            if not has_begun and run.message != SUSPENDED:
                return WriteRecord(run.queued(SUSPENDED))
        elif job.object is not None and record is not None and not record.is_of(job):
            return WriteRecord(run)
    if job.object is not None and record is not None and record.object != job.object:
        return WriteRecord(record)
    return None


def _hold_new_run(state: LifecycleState) -> Action | None:
    """A new run that `limits.maxStarts` or the job's own `suspend` suspends doesn't begin; the run
    before it goes on to its own end.
    """
    record, run = state.record, state.run_record
    has_begun = run.state.is_final or run.attempts
    is_held = state.job.suspend or state.observed.refused
    if not (state.observed.suspended or (is_held and not has_begun)):
        return None
    if record is None or record.spec_hash == state.job.spec_hash:
        return state.wait()
    return see_through(state, record) or remove_strays(state) or state.wait()
