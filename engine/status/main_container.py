"""The main container has ended: its end is the job's end, whatever the services still do."""

from typing import Any

from engine.status.containers import main_state
from engine.status.outcome import Outcome, Reason

_NEVER_STARTED = frozenset({"StartError", "ContainerCannotRun"})
_SIGNAL_BASE = 128
_HIGHEST_SIGNAL = 64


def read_main_container(pod: dict[str, Any]) -> Outcome | None:
    """Outcome of the main container, once it has ended."""
    main = main_state(pod)
    if main is None or not main.terminated:
        return None
    code, reason = main.terminated.get("exitCode"), main.terminated.get("reason", "")
    words = (main.terminated.get("message") or "").strip()
    if code == 0:
        return Outcome(Reason.SUCCEEDED, exit_code=0)
    if reason == "OOMKilled":
        limit = _memory_limit(pod, main.name)
        return Outcome(Reason.OOM_KILLED, f"out of memory{limit}", code)
    if reason in _NEVER_STARTED:
        return Outcome(Reason.CONTAINER_CONFIG_ERROR, words or reason, code)
    told = f": {words}" if words else ""
    return Outcome(Reason.SCRIPT_FAILED, f"exit code {code}{_signal(code)}{told}", code)


def _memory_limit(pod: dict[str, Any], name: str) -> str:
    for container in pod["spec"]["containers"]:
        if container["name"] == name:
            limit = ((container.get("resources") or {}).get("limits") or {}).get("memory")
            return f" (limit {limit})" if limit else ""
    return ""


def _signal(code: int | None) -> str:
    number = (code or 0) - _SIGNAL_BASE
    return f" (signal {number})" if 0 < number <= _HIGHEST_SIGNAL else ""
