"""A run that is over stays over; the pod of an attempt that got stuck does not stay behind."""

from engine.decide.actions import Action, Done, Wait, delete_pod_action
from engine.decide.situation import Situation, has_ended


def finish_run(situation: Situation) -> Action | None:
    """Only for a run in its final state.

    A pod that has ended is left to its TTL, with its log. One that has not, although its
    attempt is closed, waits for an image or serves a job that is done: it goes. Its going is not
    waited for, since nothing else depends on it.
    """
    record = situation.run_record
    if not record.state.is_final:
        return None
    for pod in situation.observed.pods:
        if has_ended(pod):
            continue
        removal = delete_pod_action(situation, pod, f"its attempt ended: {record.reason}")
        if not isinstance(removal, Wait):
            return removal
    return Done()
