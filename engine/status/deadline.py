"""A pod's time to run is over; a job that was done before that counts as done."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from engine.status.containers import main_state
from engine.status.outcome import Outcome, Reason
from engine.times import parse_time


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
    return exceeded_deadline(seconds, code)


def exceeded_deadline(seconds: int | None, exit_code: int | None = None) -> Outcome:
    """The end of a pod that ran for so long, ended by the kubelet or by the engine."""
    words = f"ran longer than its timeout of {seconds}s"
    return Outcome(Reason.DEADLINE_EXCEEDED, words, exit_code)


def deadline_at(pod: Mapping[str, Any], seconds: float) -> datetime | None:
    """When the pod's time is over, counted as the kubelet counts activeDeadlineSeconds.

    From when it took up the pod, images yet to be pulled; None as long as it has not.
    """
    began = parse_time((pod.get("status") or {}).get("startTime"))
    return None if began is None else began + timedelta(seconds=seconds)
