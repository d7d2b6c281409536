"""The pod has ended although its main container never did: an init container, or the kubelet."""

from typing import Any

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
        code = state.terminated.get("exitCode")
        if state.is_init and not state.is_sidecar and code:
            if state.terminated.get("reason") == "OOMKilled":
                return Outcome(
                    Reason.OOM_KILLED, f"init container {state.name}: out of memory", code
                )
            return Outcome(
                Reason.SCRIPT_FAILED, f"init container {state.name}: exit code {code}", code
            )
    words = ": ".join(filter(None, (status.get("reason"), status.get("message"))))
    return Outcome(Reason.CONTAINER_CONFIG_ERROR, words or "the pod failed without a word")
