"""How a pod ended, by the first of the outcome rules that knows.

By its deadline, by the cluster, or by a container of the job's own work.
"""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from engine.status.containers import ContainerState, failed_init, main_state
from engine.status.deadline import read_deadline
from engine.status.disruption import read_disruption
from engine.status.outcome import Outcome, Reason

_NEVER_STARTED = frozenset({"StartError", "ContainerCannotRun"})
_REFUSED_BY_RUNTIME = _NEVER_STARTED | {"RunContainerError"}
KUBELETS_REASONS = _NEVER_STARTED | {"ContainerStatusUnknown"}
"""With these the message of a container's end is the kubelet's; else the container wrote it."""
_INTERRUPTED = "context canceled"
_SIGNAL_BASE = 128
_HIGHEST_SIGNAL = 64


def read_container_end(state: ContainerState) -> Outcome:
    """Outcome of a container that has terminated."""
    code, reason = state.terminated.get("exitCode"), state.terminated.get("reason", "")
    is_kubelets = reason in KUBELETS_REASONS
    words = (state.terminated.get("message") or "").strip() if is_kubelets else ""
    if code == 0:
        return Outcome(Reason.SUCCEEDED, exit_code=0)
    if reason == "OOMKilled":
        return Outcome(Reason.OOM_KILLED, "out of memory", code)
    if reason in _NEVER_STARTED:
        is_lost = was_interrupted(state.terminated)
        named = Reason.NODE_LOST if is_lost else Reason.CONTAINER_CONFIG_ERROR
        return Outcome(named, words or reason, code)
    cause = f": {words}" if words else ""
    return Outcome(Reason.SCRIPT_FAILED, f"exit code {code}{_signal(code)}{cause}", code)


def was_interrupted(state: Mapping[str, Any]) -> bool:
    """Whether a start failed because the kubelet that had asked for it was gone before its end.

    `state` is what the API says of a container that waits or has terminated.
    """
    return state.get("reason") in _REFUSED_BY_RUNTIME and _INTERRUPTED in state.get("message", "")


def _signal(code: int | None) -> str:
    number = (code or 0) - _SIGNAL_BASE
    return f" (signal {number})" if 0 < number <= _HIGHEST_SIGNAL else ""


def read_main_container(pod: Mapping[str, Any]) -> Outcome | None:
    """Outcome of the main container, once it has ended."""
    main = main_state(pod)
    if main is None or not main.terminated:
        return None
    return read_container_end(main)


def read_failed_pod(pod: Mapping[str, Any]) -> Outcome | None:
    """The end of a pod in a final phase, by its init containers or the kubelet's words."""
    status = pod.get("status") or {}
    phase = status.get("phase")
    if phase == "Succeeded":
        return Outcome(Reason.SUCCEEDED, exit_code=0)
    if phase != "Failed":
        return None
    if (state := failed_init(pod)) is not None:
        ended = read_container_end(state)
        return replace(ended, message=f"init container {state.name}: {ended.message}")
    words = ": ".join(filter(None, (status.get("reason"), status.get("message"))))
    return Outcome(Reason.CONTAINER_CONFIG_ERROR, words or "the pod failed without a word")


OUTCOME_RULES: tuple[Callable[[Mapping[str, Any]], Outcome | None], ...] = (
    read_deadline,
    read_disruption,
    read_main_container,
    read_failed_pod,
)


def read_outcome(pod: Mapping[str, Any]) -> Outcome | None:
    """How the pod ended, by the first rule that knows; None while it has not."""
    found = (rule(pod) for rule in OUTCOME_RULES)
    return next((outcome for outcome in found if outcome is not None), None)
