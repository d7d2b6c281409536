"""Which pods hold a drain of their node, and until when."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from engine.status.containers import main_containers_terminated
from engine.times import format_time, parse_time
from engine.wellknown import DISRUPTION, PROTECT

_FINAL, _DEADLINE = ("Succeeded", "Failed"), "activeDeadlineSeconds"


def runs_on(pod: Mapping[str, Any] | None) -> str:
    """The node on which the pod still is; "" for none."""
    if pod is None or (pod.get("status") or {}).get("phase") in _FINAL:
        return ""
    if main_containers_terminated(pod):
        return ""
    return str((pod.get("spec") or {}).get("nodeName") or "")


def drain_words(pod: Mapping[str, Any] | None) -> str:
    """That a protected pod holds a drain, and until when at most; "" for any other."""
    if pod is None or not (node := runs_on(pod)):
        return ""
    if (pod["metadata"].get("labels") or {}).get(DISRUPTION) != PROTECT:
        return ""
    began, seconds = parse_time(pod["status"].get("startTime")), pod["spec"].get(_DEADLINE)
    until = "it ends"
    if began is not None and seconds:
        until = f"{format_time(began + timedelta(seconds=seconds))} at most"
    return f"holds a drain of {node} until {until}"
