"""Others hold the pod back with scheduling gates of their own, as Kueue does: its clocks stop.

A gate is there from the pod's creation, from its spec, its template or a webhook: Kubernetes lets
none be added to a pod that exists. A server that did would be followed all the same.
"""

from msgspec.structs import replace

from engine.lifecycle.actions import Action, RefreshPod, WriteRecord
from engine.lifecycle.state import LifecycleState, held_by
from engine.status.containers import has_started
from engine.status.outcome import State


def wait_for_gates(state: LifecycleState) -> Action | None:
    """Queued until the last of these gates is gone; the time to start counts from then."""
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
