"""How one container of the job's own work ended, in the words that its outcome is told in."""

from collections.abc import Mapping
from typing import Any

from engine.status.containers import ContainerState
from engine.status.outcome import Outcome, Reason

_NEVER_STARTED = frozenset({"StartError", "ContainerCannotRun"})
_REFUSED_BY_RUNTIME = _NEVER_STARTED | {"RunContainerError"}
_INTERRUPTED = "context canceled"
_SIGNAL_BASE = 128
_HIGHEST_SIGNAL = 64


def read_container_end(pod: Mapping[str, Any], state: ContainerState) -> Outcome:
    """Outcome of a container that has terminated."""
    code, reason = state.terminated.get("exitCode"), state.terminated.get("reason", "")
    words = (state.terminated.get("message") or "").strip()
    if code == 0:
        return Outcome(Reason.SUCCEEDED, exit_code=0)
    if reason == "OOMKilled":
        return Outcome(Reason.OOM_KILLED, f"out of memory{_memory_limit(pod, state)}", code)
    if reason in _NEVER_STARTED:
        named = (
            Reason.NODE_LOST if was_interrupted(state.terminated) else Reason.CONTAINER_CONFIG_ERROR
        )
        return Outcome(named, words or reason, code)
    told = f": {words}" if words else ""
    return Outcome(Reason.SCRIPT_FAILED, f"exit code {code}{_signal(code)}{told}", code)


def was_interrupted(state: Mapping[str, Any]) -> bool:
    """Whether a start failed because the kubelet that had asked for it was gone before its end.

    `state` is what the API says of a container that waits or has terminated.
    """
    return state.get("reason") in _REFUSED_BY_RUNTIME and _INTERRUPTED in state.get("message", "")


def _memory_limit(pod: Mapping[str, Any], state: ContainerState) -> str:
    for container in pod["spec"].get("initContainers" if state.is_init else "containers") or ():
        if container["name"] == state.name:
            limit = ((container.get("resources") or {}).get("limits") or {}).get("memory")
            return f" (limit {limit})" if limit else ""
    return ""


def _signal(code: int | None) -> str:
    number = (code or 0) - _SIGNAL_BASE
    return f" (signal {number})" if 0 < number <= _HIGHEST_SIGNAL else ""
