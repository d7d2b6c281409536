"""Deleting a pod: at once if nothing of it ever ran, with its own grace otherwise."""

from engine.decide.actions import DeletePod, Wait
from engine.decide.situation import Pod, is_terminating, name_of, uid_of
from engine.status.containers import is_anything_running


def remove_pod(pod: Pod, why: str) -> DeletePod | Wait:
    """Delete, or wait for a deletion that is under way."""
    if is_terminating(pod):
        return Wait()
    grace = None if is_anything_running(pod) else 0
    version = pod["metadata"].get("resourceVersion", "")
    return DeletePod(name_of(pod), uid_of(pod), grace, why, version)
