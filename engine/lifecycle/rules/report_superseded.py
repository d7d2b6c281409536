"""A process asks for each revision of a spec once: it doesn't replace back what came later.

Two processes that read different revisions of one spec would replace each other's runs for ever.
The engine of the later run may have ended, or leave the job to this one: its end is recorded here.
"""

from engine.errors import SupersededError
from engine.lifecycle.actions import Action, RefreshPod, ReportError, Wait, WriteRecord
from engine.lifecycle.record import Record
from engine.lifecycle.rules.close_attempt import see_through
from engine.lifecycle.state import LifecycleState, Pod, gate_position, has_ended, uid_of
from engine.status.outcome import Reason

_FINAL = (Reason.SUCCEEDED, Reason.DEADLINE_EXCEEDED)
"""No engine makes another attempt after these."""
_HINT = "reconcile again, or change the spec, to replace it"


def report_superseded(state: LifecycleState) -> Action | None:
    """Only for a run that began after the spec was read; it is never ended nor tried again.

    A failed run of the same spec, which another process has tried in another way, is this one's
    outcome, too. A pod that this process made, and that is in no record yet, goes: it never ran.
    So does a pod of a run that is over.
    """
    record = state.record
    if record is None or not state.observed.superseded:
        return None
    if record.spec_hash == state.job.spec_hash:
        if record.reason is not Reason.SUPERSEDED:
            return None
        words = f"superseded: {record.message}"
    else:
        differs = record.changed_fields(state.job)
        words = f"superseded by run {record.run} of source {record.source!r}"
        words += f", begun by engine {record.engine}" if record.engine else ""
        words += f"; {', '.join(differs)} differs" if differs else ""
    over = (pod for pod in state.observed.pods if _is_over(state, record, pod))
    if (removal := state.delete_first(over, "its run is over")) is not None:
        return removal
    attempt, rejection = record.open_attempt, state.rejected_record()
    is_refused = rejection is not None and state.now < rejection.retry_at
    step = None if is_refused else see_through(state, record)
    if attempt is not None and isinstance(step, WriteRecord) and step.record.reason not in _FINAL:
        if attempt.uid not in state.observed.refreshed_at:
            return RefreshPod(attempt.pod, attempt.uid)
        if state.is_fresh(attempt.uid):
            step = None  # its own engine has time to try it again
    if step is not None and not isinstance(step, Wait):
        return step
    return ReportError(words, _HINT, SupersededError)


def _is_over(state: LifecycleState, record: Record, pod: Pod) -> bool:
    if uid_of(pod) in state.recorded:
        return record.state.is_final and not has_ended(pod)
    return uid_of(pod) in state.observed.created and gate_position(pod) is not None
