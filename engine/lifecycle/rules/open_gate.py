"""Step 4: the pod is owned from and recorded, let it run."""

from datetime import timedelta

from msgspec.structs import replace

from engine.lifecycle.actions import Action, CreateDependents, RemoveSchedulingGate, WriteRecord
from engine.lifecycle.rules.close_attempt import close, waiting_since
from engine.lifecycle.state import LifecycleState, gate_position
from engine.status.outcome import Outcome, Reason

SHARE = 0.1


def open_gate(state: LifecycleState) -> Action | None:
    """An engine that died in between may have left less than it recorded: look again first.

    Nor was its absence the pod's time to start: if that took a share of it, count from now on.
    A pod that refers to a Secret that isn't there could only wait for it on a node: it ends here.
    """
    attempt, position = state.attempt, gate_position(state.pod)
    if position is None:
        return None
    if attempt.uid not in state.observed.dependents_ready:
        policies = state.run_record.next_policies(state.job)
        return CreateDependents(attempt.pod, attempt.uid, attempt.number, policies)
    missing = state.observed.secrets_missing.get(attempt.uid)
    if missing is not None:
        return close(state, Outcome(Reason.CONTAINER_CONFIG_ERROR, missing))
    spent = state.now - waiting_since(state)
    if spent > timedelta(seconds=SHARE * state.job.start_timeout):
        claim = replace(attempt, claimed_at=state.now)
        return WriteRecord(state.run_record.with_attempt(claim))
    return RemoveSchedulingGate(attempt.pod, attempt.uid, *position)
