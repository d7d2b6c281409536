"""A Secret or ConfigMap that was deleted while its pod still waits for it is made anew.

Both are immutable, so deletion is all that can befall them; a container that has started has read
what it needs. A pod says that it lacks a Secret for its environment; that a volume can't be mounted
it says in Events alone, and its containers are ContainerCreating for as long.
"""

from datetime import datetime, timedelta

from engine.lifecycle.actions import CreateDependents
from engine.lifecycle.state import LifecycleState
from engine.status.containers import has_started
from engine.status.waiting import lacks_dependents, scheduled_at

SLOW_START = timedelta(seconds=10)
"""A pod that has been on its node for so long, and has not started, may wait for a volume."""
KUBELET_RETRY = timedelta(seconds=30)
"""Within this time the kubelet tries again to create a container."""


def restore_dependents(state: LifecycleState) -> CreateDependents | None:
    """Looked up once because the pod is slow, and once because it says what it lacks."""
    attempt = state.attempt
    due, reported = next_look(state), lacks_dependents(state.pod)
    was_looked_up = (attempt.uid, reported) in state.observed.dependents_looked_up
    if due is None or state.now < due or was_looked_up:
        return None
    policies = state.run_record.next_policies(state.job)
    return CreateDependents(attempt.pod, attempt.uid, attempt.number, policies, reported)


def next_look(state: LifecycleState) -> datetime | None:
    """When the pod's dependents, or what it says of them, are to be looked at without an event."""
    reported = lacks_dependents(state.pod)
    looked_up_at = state.observed.dependents_looked_up.get((state.attempt.uid, reported))
    if reported:
        return looked_up_at + KUBELET_RETRY if looked_up_at else state.now
    if looked_up_at or has_started(state.pod):
        return None
    since = scheduled_at(state.pod)
    return None if since is None else since + SLOW_START
