"""A run that is over stays over; the pod of an attempt that got stuck does not stay behind."""

from engine.lifecycle.actions import Action, Done, Wait, delete_pod_action
from engine.lifecycle.rules.resolve_unrecorded import is_discardable
from engine.lifecycle.state import LifecycleState, has_ended


def finish_run(state: LifecycleState) -> Action | None:
    """Only for a run in its final state.

    A pod that has ended is left to its TTL, with its log. One that has not, although its
    attempt is closed, waits for an image or serves a job that is done: it goes. Its going is not
    waited for, since nothing else depends on it. Nor does one stay that was never recorded; what
    runs and isn't in the record is not the engine's to delete.
    """
    record = state.run_record
    if not record.state.is_final:
        return None
    for pod in state.observed.pods:
        known = state.is_owned(pod) or is_discardable(state, pod)
        if has_ended(pod) or not known:
            continue
        removal = delete_pod_action(state, pod, f"its attempt ended: {record.reason}")
        if not isinstance(removal, Wait):
            return removal
    return Done()
