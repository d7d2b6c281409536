"""Watches find pods by labels. A pod of ours that lost its labels is asked for by its name."""

from engine.lifecycle.actions import RefreshPod
from engine.lifecycle.state import LifecycleState, name_of, uid_of


def recheck_unlabelled(state: LifecycleState) -> RefreshPod | None:
    """As often as an answer of the API gets old: `wait` ends every wait by then."""
    pod = state.unlabelled_pod()
    if pod is None or state.is_fresh(uid_of(pod)):
        return None
    return RefreshPod(name_of(pod), uid_of(pod))
