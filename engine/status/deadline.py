"""A pod's time to run is over; a job that was done before that counts as done."""

from collections.abc import Mapping
from typing import Any

from engine.status.containers import main_state
from engine.status.outcome import Outcome, Reason


def read_deadline(pod: Mapping[str, Any]) -> Outcome | None:
    """DeadlineExceeded, if the kubelet ended the pod for its timeout."""
    status = pod.get("status") or {}
    if status.get("reason") != "DeadlineExceeded":
        return None
    main = main_state(pod)
    if main is not None and main.terminated.get("exitCode") == 0:
        return None
    seconds = pod["spec"].get("activeDeadlineSeconds")
    code = main.terminated.get("exitCode") if main else None
    return exceeded_deadline(seconds, code)


def exceeded_deadline(seconds: int | None, exit_code: int | None = None) -> Outcome:
    """The end of a pod that ran for so long, ended by the kubelet or by the engine."""
    words = f"ran longer than its timeout of {seconds}s"
    return Outcome(Reason.DEADLINE_EXCEEDED, words, exit_code)
