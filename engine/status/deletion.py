"""How a pod ended that is being deleted, or is gone.

A container that dies of the deletion has not failed; one that was done before has. The deletion was
asked for at `deletionTimestamp` less `deletionGracePeriodSeconds`. The kubelet's own last delete,
once the containers have stopped, sets the grace to 0 and the time to its own. So the earliest time
of a UID counts, and a grace of 0 says nothing.

An engine that has seen only the last state, with a grace of 0, doesn't know whether the container
would have ended anyway. Nor do times show the order of two things in one second. In both cases the
pod counts as deleted.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from engine.status import read_outcome
from engine.status.containers import container_states, finished_at
from engine.status.disruption import read_announced_disruption
from engine.status.outcome import Outcome, Reason
from engine.times import parse_time

Pod = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Deletion:
    """What the states of one pod that were seen so far say of its deletion."""

    asked_at: datetime | None = None
    """The earliest time at which one of them says that it was asked for."""
    before: Outcome | None = None
    """How the pod had ended when it was last seen without a deletion."""

    def seen(self, pod: Pod, last: Pod | None = None) -> "Deletion":
        """The same, and what `pod` says; `last` is the state that was known before it.

        Itself as long as nothing tells of a deletion.
        """
        if not _is_terminating(pod):
            return self
        before = self.before
        if before is None and last is not None and not _is_terminating(last):
            before = read_outcome(dict(last))
        times = [time for time in (self.asked_at, _asked_at(pod)) if time is not None]
        return Deletion(min(times, default=None), before)


UNSEEN = Deletion()


def read_end(pod: Pod, deletion: Deletion = UNSEEN) -> Outcome | None:
    """How a pod that is still there has ended, whether it is being deleted or not."""
    return read_deleted(pod, deletion) if _is_terminating(pod) else read_outcome(dict(pod))


def read_deleted(pod: Pod, deletion: Deletion = UNSEEN, *, gone: bool = False) -> Outcome | None:
    """Outcome of a pod by its last state and by `deletion`, what was seen of it before.

    None when all that ended it was its deletion, and as long as it may still end otherwise: until
    the main container has ended, or the pod is `gone`, an eviction is no more than announced. A
    lost node is believed at once, since nothing will ever be heard of it.
    """
    known = deletion.seen(pod)
    if known.before is not None:
        return known.before
    outcome = read_outcome(dict(pod))
    if outcome is not None and (outcome.reason is Reason.SUCCEEDED or _was_over(pod, known)):
        return outcome
    announced = read_announced_disruption(pod)
    if announced is None or announced.reason is Reason.NODE_LOST:
        return announced
    return announced if gone or outcome is not None else None


def _was_over(pod: Pod, deletion: Deletion) -> bool:
    """Whether what ended the pod came before its deletion was asked for."""
    if not _is_terminating(pod) or _is_unnoticed(pod):
        return True
    end = _ended_at(pod)
    return end is not None and deletion.asked_at is not None and end < deletion.asked_at


def _is_unnoticed(pod: Pod) -> bool:
    """Whether the status is from before the kubelet knew of the deletion.

    The deletion is a generation of its own, and a status names the one that it is about (by
    default from 1.34 on; without it nothing can be concluded).
    """
    observed = (pod.get("status") or {}).get("observedGeneration") or 0
    return 0 < observed < (pod["metadata"].get("generation") or 0)


def _asked_at(pod: Pod) -> datetime | None:
    metadata = pod["metadata"]
    grace = metadata.get("deletionGracePeriodSeconds") or 0
    deletion = parse_time(metadata["deletionTimestamp"])
    return deletion - timedelta(seconds=grace) if grace and deletion is not None else None


def _ended_at(pod: Pod) -> datetime | None:
    """When the main container ended; without one, the init container that failed before it."""
    if (end := finished_at(pod)) is not None:
        return end
    for state in container_states(pod):
        if state.is_init and not state.is_sidecar and state.terminated.get("exitCode"):
            return parse_time(state.terminated.get("finishedAt"))
    return None


def _is_terminating(pod: Pod) -> bool:
    return bool(pod["metadata"].get("deletionTimestamp"))
