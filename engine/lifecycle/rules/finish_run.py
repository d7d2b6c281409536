"""A run that is over stays over; the pod of an attempt that got stuck does not stay behind."""

from itertools import filterfalse

from engine.lifecycle.actions import Action, Done
from engine.lifecycle.rules.resolve_unrecorded import discard
from engine.lifecycle.rules.update_pod import update_pod
from engine.lifecycle.state import LifecycleState, gate_position, has_ended


def finish_run(state: LifecycleState) -> Action | None:
    """Only for a run in its final state.

    A pod that has ended is left to its TTL, with its log; one whose outcome has a
    `ttlAfterFinished` gets the time until which it is kept. One that has not ended, although its
    attempt is closed, waits for an image or serves a job that is done: it goes. Its going is not
    waited for, since nothing else depends on it. Nor does one stay that no engine has recorded
    within its time; what runs and isn't in the record is not the engine's to delete.
    """
    record, rejection = state.run_record, state.rejected_record()
    if not record.state.is_final:
        return None
    if (update := update_pod(state)) is not None:
        return update
    left = list(filterfalse(has_ended, state.observed.pods))
    owned = filter(state.is_owned, left)
    if removal := state.delete_first(owned, f"its attempt ended: {record.reason}"):
        return removal
    if rejection is not None and state.now < rejection.retry_at:
        return Done()
    for pod in filterfalse(state.is_owned, left):
        if gate_position(pod) is not None and (given_up := discard(state, pod)):
            return given_up
    return Done()
