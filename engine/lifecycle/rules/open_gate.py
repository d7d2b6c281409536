"""Step 4: the pod is owned from and recorded, let it run."""

from datetime import timedelta

from msgspec.structs import replace

from engine.lifecycle.actions import Action, CreateDependents, RemoveSchedulingGate, WriteRecord
from engine.lifecycle.rules.close_attempt import close, waiting_since
from engine.lifecycle.state import LifecycleState, gate_position, is_terminating, name_of, uid_of
from engine.status.outcome import Outcome, Reason

SHARE = 0.1


def open_gate(state: LifecycleState) -> Action | None:
    """An engine that died in between may have left less than it recorded: look again first.

    Nor was its absence the pod's time to start: if that took a share of it, count from now on.
    A pod that refers to a Secret that isn't there could only wait for it on a node: it ends here.
    """
    attempt = state.run_record.open_attempt
    pod = state.pod_of(attempt.uid) if attempt else None
    if attempt is None or pod is None:
        return None
    position = gate_position(pod)
    if position is None:
        return None
    if is_terminating(pod):
        return state.wait()
    if uid_of(pod) not in state.observed.dependents_ready:
        policies = state.run_record.next_policies(state.job)
        return CreateDependents(name_of(pod), uid_of(pod), attempt.number, policies)
    missing = state.observed.secrets_missing.get(uid_of(pod))
    if missing is not None:
        return close(state, attempt, Outcome(Reason.CONTAINER_CONFIG_ERROR, missing))
    spent = state.now - waiting_since(attempt, pod)
    if spent > timedelta(seconds=SHARE * state.job.start_timeout):
        claim = replace(attempt, claimed_at=state.now)
        return WriteRecord(state.run_record.with_attempt(claim))
    return RemoveSchedulingGate(name_of(pod), uid_of(pod), *position)
