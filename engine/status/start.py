"""Since when, and for what, a pod that has not started yet is waiting."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from engine.status.containers import container_states
from engine.times import parse_time


def read_start_cause(pod: Mapping[str, Any]) -> str:
    """The scheduler's words while unscheduled, else the container that is not there yet."""
    for condition in (pod.get("status") or {}).get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            words = condition.get("message") or condition.get("reason", "")
            return f"not scheduled: {words}"
    for state in container_states(pod):
        if state.waiting and not state.has_started:
            words = ": ".join(
                filter(None, (state.waiting.get("reason"), state.waiting.get("message")))
            )
            return f"container {state.name} ({state.image}) has not started: {words}"
    if not (pod.get("spec") or {}).get("nodeName"):
        return "not scheduled: no scheduler has looked at the pod"
    return "the kubelet has not reported any container"


def scheduled_at(pod: Mapping[str, Any]) -> datetime | None:
    """When the pod was given its node; None while it has none."""
    for condition in (pod.get("status") or {}).get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "True":
            return parse_time(condition.get("lastTransitionTime"))
    return None
