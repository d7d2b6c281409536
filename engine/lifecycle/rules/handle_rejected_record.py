"""The server rejected the record: a job that can't be recorded must not run.

The rejection can't be recorded either, so the engine reports it. Until `retry_at` nothing is
written or created, and what was made for the attempt goes. Then the other rules have their turn:
`start_attempt` writes the record before it creates another pod.
"""

from engine.errors import QuotaExceededError
from engine.lifecycle.actions import Action, ReportError, Wait
from engine.lifecycle.state import LifecycleState, gate_position, has_ended, is_terminating, uid_of
from engine.status.containers import has_started


def handle_rejected_record(state: LifecycleState) -> Action | None:
    """Only as long as the record is the very one that was to be replaced.

    A pod that is gated and in no record is deleted; what runs is never touched. A quota makes the
    job wait for room, unless something of it is under way.
    """
    rejection, record = state.rejected_record(), state.run_record
    if rejection is None or record.state.is_final or state.now >= rejection.retry_at:
        return None
    attempt = record.open_attempt
    if attempt is None:
        removal = remove_unrecorded(state, rejection.message)
        if removal is not None or rejection.kind is not QuotaExceededError:
            return removal or ReportError(rejection.message, rejection.hint, rejection.kind)
        return Wait(rejection.retry_at, state.queued(record, rejection))
    pod = state.pod_of(attempt.uid)
    if pod is None or not has_started(pod) or has_ended(pod) or is_terminating(pod):
        return ReportError(rejection.message, rejection.hint, rejection.kind)
    return state.wait(rejection.retry_at)


def remove_unrecorded(state: LifecycleState, why: str) -> Action | None:
    """Delete what this engine made for an attempt and didn't record."""
    gated = (pod for pod in state.other_pods("") if gate_position(pod) is not None)
    return state.delete_first((pod for pod in gated if uid_of(pod) not in state.recorded), why)
