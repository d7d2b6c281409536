"""Which pods hold a drain of their node, and until when."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from engine.status.containers import main_containers_terminated
from engine.times import format_time, parse_time
from engine.wellknown import DISRUPTION, PROTECT

_FINAL = ("Succeeded", "Failed")


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
    end = drain_end(pod)
    until = f"until {format_time(end)} at most" if end else "until it ends"
    return f"holds a drain of {node} {until}"


def drain_end(pod: Mapping[str, Any]) -> datetime | None:
    """When the kubelet ends the pod, if it is to keep its timeout."""
    began = parse_time((pod.get("status") or {}).get("startTime"))
    seconds = (pod.get("spec") or {}).get("activeDeadlineSeconds")
    return began + timedelta(seconds=seconds) if began is not None and seconds else None
