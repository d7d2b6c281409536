"""Step 4: the pod is owned from and recorded, let it run, unless gates of others hold it back.

Kueue has such gates. A gate is there from the pod's creation, from its spec, its template or a
webhook: Kubernetes lets none be added to a pod that exists. A server that did would be followed all
the same.
"""

from datetime import timedelta

from msgspec.structs import replace

from engine.lifecycle.actions import (
    Action,
    CreateDependents,
    RefreshPod,
    RemoveSchedulingGate,
    WriteRecord,
)
from engine.lifecycle.rules.close_attempt import close, waiting_since
from engine.lifecycle.state import LifecycleState, gate_position, held_by
from engine.status.containers import has_started
from engine.status.outcome import Outcome, Reason, State

SHARE = 0.1


def open_gate(state: LifecycleState) -> Action | None:
    """An engine that died in between may have left less than it recorded: look again first.

    Nor was its absence the pod's time to start: if that took a share of it, count from now on.
    A pod that refers to a Secret that isn't there could only wait for it on a node: it ends here.
    """
    attempt, position = state.attempt, gate_position(state.pod)
    if position is None:
        return _wait_for_others(state)
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


def _wait_for_others(state: LifecycleState) -> Action | None:
    """Queued until the last of their gates is gone; the time to start counts from then."""
    record, attempt = state.run_record, state.attempt
    is_queued, gates = record.state is State.QUEUED, held_by(state.pod)
    if gates:
        if is_queued:
            return state.wait()
        if not state.is_fresh(attempt.uid):
            return RefreshPod(attempt.pod, attempt.uid)
        return WriteRecord(replace(record, state=State.QUEUED, message=gates))
    if is_queued and not has_started(state.pod):
        released = record.with_attempt(replace(attempt, claimed_at=state.now))
        return WriteRecord(replace(released, state=State.STARTING, message=""))
    return None
