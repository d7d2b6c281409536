"""Deleting a pod: at once if nothing of it ever ran, with its own grace otherwise."""

from engine.decide.actions import DeletePod, LookAgain, Wait
from engine.decide.situation import Pod, Situation, is_terminating, name_of, uid_of
from engine.status.containers import ends_by_itself, is_anything_running


def remove_pod(situation: Situation, pod: Pod, why: str) -> DeletePod | LookAgain | Wait:
    """Delete, or wait for a deletion, or an end of its own, that is under way.

    Only the API can tell whether the pod is not of a run or attempt that began since the record
    was read: another engine's, or one that somebody asked for.
    """
    if is_terminating(pod) or ends_by_itself(pod):
        return Wait()
    if not situation.is_certain_of(uid_of(pod)):
        return LookAgain(name_of(pod), uid_of(pod))
    grace = None if is_anything_running(pod) else 0
    version = pod["metadata"].get("resourceVersion", "")
    return DeletePod(name_of(pod), uid_of(pod), grace, why, version)
