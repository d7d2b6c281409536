"""Others hold the pod back with scheduling gates of their own, as Kueue does: its clocks stop.

A gate is there from the pod's creation, from its spec, its template or a webhook: Kubernetes lets
none be added to a pod that exists. A server that did would be followed all the same.
"""

from msgspec.structs import replace

from engine.lifecycle.actions import Action, RefreshPod, WriteRecord
from engine.lifecycle.state import LifecycleState, has_ended, held_by, is_terminating
from engine.status.containers import has_started
from engine.status.outcome import State


def wait_for_gates(state: LifecycleState) -> Action | None:
    """Queued until the last of these gates is gone; the time to start counts from then."""
    record = state.run_record
    attempt = record.open_attempt
    pod = state.pod_of(attempt.uid) if attempt else None
    if attempt is None or pod is None or is_terminating(pod) or has_ended(pod):
        return None
    is_queued, gates = record.state is State.QUEUED, held_by(pod)
    if gates:
        if is_queued:
            return state.wait()
        if not state.is_fresh(attempt.uid):
            return RefreshPod(attempt.pod, attempt.uid)
        return WriteRecord(replace(record, state=State.QUEUED, message=gates))
    if is_queued and not has_started(pod):
        released = record.with_attempt(replace(attempt, claimed_at=state.now))
        return WriteRecord(replace(released, state=State.STARTING, message=""))
    return None
