"""A run that is over stays over; the pod of an attempt that got stuck does not stay behind."""

from engine.decide.actions import Action, DeletePod, Done, LookAgain
from engine.decide.removal import remove_pod
from engine.decide.situation import Situation, is_finished, name_of, uid_of
from engine.status.containers import ends_by_itself


def finish_run(situation: Situation) -> Action | None:
    """Only for a run in its final state.

    A pod that has finished is left to its TTL, with its log. One that has not, although its
    attempt is closed, waits for an image or serves a job that is done: it goes. Its going is not
    waited for, since nothing else depends on it.

    A pod may also be of a run that began since the record was read: only the API can tell.
    """
    record = situation.run_record
    if not record.state.is_final:
        return None
    for pod in situation.observed.pods:
        if is_finished(pod) or ends_by_itself(pod):
            continue
        removal = remove_pod(pod, f"its attempt ended: {record.reason}")
        if isinstance(removal, DeletePod):
            is_sure = situation.is_certain_of(uid_of(pod))
            return removal if is_sure else LookAgain(name_of(pod), uid_of(pod))
    return Done()
