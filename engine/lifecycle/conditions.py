"""The conditions of a JobSpec object, by its state: what `kubectl wait` and kstatus read."""

from collections.abc import Mapping
from datetime import datetime
from sys import intern
from typing import Any

from engine.status.outcome import State
from engine.times import format_time

INVALID, SUSPENDED = "InvalidSpec", "Suspended"
"""States of an object that no run has."""
_UNDER_WAY = {"Ready": "False", "Reconciling": "True", "Finished": "False"}
_FAILED = {"Ready": "False", "Stalled": "True", "Finished": "True", "Failed": "True"}
CONDITIONS: Mapping[str, Mapping[str, str]] = {
    State.QUEUED: _UNDER_WAY,
    State.STARTING: _UNDER_WAY,
    State.RUNNING: _UNDER_WAY,
    State.SUCCEEDED: {"Ready": "True", "Finished": "True", "Complete": "True"},
    State.FAILED: _FAILED,
    State.CANCELLED: _FAILED,
    INVALID: _FAILED,
    SUSPENDED: {"Ready": "True", "Finished": "False", "Suspended": "True"},
}
"""Every state. What would be abnormal is absent rather than False."""
_KNOWN = {pair: pair for conditions in CONDITIONS.values() for pair in conditions.items()}
Since = Mapping[tuple[str, str], str]
"""Of each condition, by its type and status, the time of its last change."""


def read_since(status: Mapping[str, Any]) -> Since:
    """What another writing of the status needs: objects share what is the same in all of them."""
    return {
        pair: intern(at)
        for one in status.get("conditions") or ()
        if isinstance(one, Mapping) and isinstance(at := one.get("lastTransitionTime"), str)
        if (pair := _KNOWN.get((str(one.get("type")), str(one.get("status")))))
    }


def make_conditions(
    state: str,
    reason: str,
    message: str,
    generation: int,
    since: Since,
    now: datetime,
) -> list[dict[str, Any]]:
    """Those of an object in this state; one whose status stays keeps the time of its change."""
    return [
        {
            "type": kind,
            "status": status,
            "reason": reason or state,
            "message": message,
            "lastTransitionTime": since.get((kind, status)) or format_time(now),
            "observedGeneration": generation,
        }
        for kind, status in CONDITIONS[state].items()
    ]
