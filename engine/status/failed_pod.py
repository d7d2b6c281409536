"""The pod has ended although its main container never did: an init container, or the kubelet."""

from dataclasses import replace
from typing import Any

from engine.status.container_end import read_container_end
from engine.status.containers import container_states
from engine.status.outcome import Outcome, Reason


def read_failed_pod(pod: dict[str, Any]) -> Outcome | None:
    """The end of a pod in a final phase, by its init containers or the kubelet's words."""
    status = pod.get("status") or {}
    phase = status.get("phase")
    if phase == "Succeeded":
        return Outcome(Reason.SUCCEEDED, exit_code=0)
    if phase != "Failed":
        return None
    for state in container_states(pod):
        if state.is_init and not state.is_sidecar and state.terminated.get("exitCode"):
            ended = read_container_end(pod, state)
            return replace(ended, message=f"init container {state.name}: {ended.message}")
    words = ": ".join(filter(None, (status.get("reason"), status.get("message"))))
    return Outcome(Reason.CONTAINER_CONFIG_ERROR, words or "the pod failed without a word")
