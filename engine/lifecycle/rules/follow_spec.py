"""The record says at once that another run is to begin, or may not, and the status of an object
follows every edit of it.
"""

from engine.lifecycle.actions import WriteRecord
from engine.lifecycle.state import LifecycleState

SUSPENDED = "spec.suspend is true"


def follow_spec(state: LifecycleState) -> WriteRecord | None:
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
