"""A Secret or ConfigMap that was deleted while its pod still waits for it is made anew.

Both are immutable, so deletion is all that can befall them; a container that has started has read
what it needs. A pod says that it lacks a Secret for its environment; that a volume can't be mounted
it says in Events alone, and its containers are ContainerCreating for as long.
"""

from datetime import datetime, timedelta

from engine.lifecycle.actions import CreateDependents
from engine.lifecycle.pull_fallback import policies_of_attempt
from engine.lifecycle.state import (
    LifecycleState,
    Pod,
    has_ended,
    is_terminating,
    uid_of,
)
from engine.render.variables import has_dependents
from engine.status.containers import has_started
from engine.status.start import scheduled_at
from engine.status.waiting import lacks_dependents

SLOW_START = timedelta(seconds=10)
"""A pod that has been on its node for so long, and has not started, may wait for a volume."""
KUBELET_RETRY = timedelta(seconds=30)
"""Within this time the kubelet tries again to create a container."""


def restore_dependents(state: LifecycleState) -> CreateDependents | None:
    """Looked up once because the pod is slow, and once because it says what it lacks."""
    attempt = state.run_record.open_attempt
    pod = state.pod_of(attempt.uid) if attempt else None
    if attempt is None or pod is None:
        return None
    due = _lookup_due(state, pod)
    if due is None or state.now < due:
        return None
    policies = policies_of_attempt(state.job, state.run_record.attempts)
    return CreateDependents(
        attempt.number, attempt.pod, attempt.uid, policies, reported=lacks_dependents(pod)
    )


def next_look(state: LifecycleState, pod: Pod) -> datetime | None:
    """When the pod's dependents, or what it says of them, are to be looked at without an event."""
    restored = _restored_at(state, pod)
    return _lookup_due(state, pod) if restored is None else restored + KUBELET_RETRY


def awaits_kubelet(state: LifecycleState, pod: Pod) -> bool:
    """Whether the pod says that it lacks what has been looked up, and restored, just now."""
    restored = _restored_at(state, pod)
    return restored is not None and state.now < restored + KUBELET_RETRY


def _restored_at(state: LifecycleState, pod: Pod) -> datetime | None:
    found = state.observed.dependents_looked_up.get((uid_of(pod), True))
    return found if lacks_dependents(pod) else None


def _lookup_due(state: LifecycleState, pod: Pod) -> datetime | None:
    if is_terminating(pod) or has_ended(pod):
        return None
    reported = lacks_dependents(pod)
    if (uid_of(pod), reported) in state.observed.dependents_looked_up:
        return None
    if reported:
        return state.now
    if has_started(pod) or not has_dependents(state.job):
        return None
    since = scheduled_at(pod)
    return None if since is None else since + SLOW_START
