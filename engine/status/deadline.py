"""`activeDeadlineSeconds` has run out; a job that was done before that counts as done."""

from typing import Any

from engine.status.containers import main_state
from engine.status.outcome import Outcome, Reason


def read_deadline(pod: dict[str, Any]) -> Outcome | None:
    """DeadlineExceeded, if the kubelet ended the pod for its timeout."""
    status = pod.get("status") or {}
    if status.get("reason") != "DeadlineExceeded":
        return None
    main = main_state(pod)
    if main is not None and main.terminated.get("exitCode") == 0:
        return None
    seconds = pod["spec"].get("activeDeadlineSeconds")
    code = main.terminated.get("exitCode") if main else None
    return Outcome(Reason.DEADLINE_EXCEEDED, f"ran longer than its timeout of {seconds}s", code)
