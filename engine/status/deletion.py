"""A pod that is being deleted, or is gone: how it ended, where its last state tells."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from engine.status import read_outcome
from engine.status.containers import finished_at, parse_time
from engine.status.disruption import read_announced_disruption
from engine.status.outcome import Outcome, Reason


def read_deleted(pod: Mapping[str, Any]) -> Outcome | None:
    """Outcome of a pod by its last state; None when all that ended it was its deletion.

    A container that dies of the deletion has not failed; one that was done before has.
    """
    outcome = read_outcome(dict(pod))
    if outcome is not None and (outcome.reason is Reason.SUCCEEDED or _was_over(pod)):
        return outcome
    return read_announced_disruption(pod)


def _was_over(pod: Mapping[str, Any]) -> bool:
    metadata, end = pod["metadata"], finished_at(pod)
    deletion = parse_time(metadata.get("deletionTimestamp"))
    if deletion is None:
        return True
    grace = timedelta(seconds=metadata.get("deletionGracePeriodSeconds") or 0)
    return end is not None and end < deletion - grace
