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
from datetime import datetime, timedelta
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from engine.status.containers import failed_init, finished_at
from engine.status.disruption import read_announced_disruption
from engine.status.last_words import read_last_words
from engine.status.outcome import Outcome, Reason
from engine.status.pod_end import read_outcome
from engine.times import earliest, parse_time

Pod = Mapping[str, Any]


class Deletion(Struct, frozen=True):
    """What the states of one pod that were seen so far say of its deletion."""

    asked_at: datetime | None = None
    """The earliest time at which one of them says that it was asked for."""
    before: Outcome | None = None
    """How the pod had ended when it was last seen without a deletion."""

    def seen(self, pod: Pod, last: Pod | None = None) -> "Deletion":
        """The same, and what `pod` says; `last` is the state that was known before it.

        Itself as long as nothing tells of a deletion.
        """
        metadata, before = pod["metadata"], self.before
        deleted_at = parse_time(metadata.get("deletionTimestamp"))
        if deleted_at is None:
            return self
        if before is None and last is not None and "deletionTimestamp" not in last["metadata"]:
            before = read_outcome(last)
        grace = metadata.get("deletionGracePeriodSeconds")
        asked_at = deleted_at - timedelta(seconds=grace) if grace else None
        return Deletion(earliest(self.asked_at, asked_at), before)


UNSEEN = Deletion()


def read_end(pod: Pod, deletion: Deletion = UNSEEN) -> Outcome | None:
    """How a pod that is still there has ended, whether it is being deleted or not."""
    is_terminating = "deletionTimestamp" in pod["metadata"]
    return read_deleted(pod, deletion) if is_terminating else read_outcome(pod)


def read_deleted(pod: Pod, deletion: Deletion = UNSEEN, *, gone: bool = False) -> Outcome | None:
    """Outcome of a pod by its last state and by `deletion`, what was seen of it before.

    None when all that ended it was its deletion, and as long as it may still end otherwise: until
    the main container has ended, or the pod is `gone`, an eviction is no more than announced. A
    lost node is believed at once, since nothing will ever be heard of it.
    """
    known = deletion.seen(pod)
    if known.before is not None:
        return known.before
    outcome = read_outcome(pod)
    if outcome is not None and (outcome.reason is Reason.SUCCEEDED or _was_over(pod, known)):
        return outcome
    announced = read_announced_disruption(pod)
    if announced is None or announced.reason is Reason.NODE_LOST:
        return announced
    return announced if gone or outcome is not None else None


def read_gone(pod: Pod, deletion: Deletion = UNSEEN) -> Outcome:
    """Outcome of a pod that is gone, with its last words; PodDeleted, if only that ended it."""
    outcome = read_deleted(pod, deletion, gone=True) or deleted(pod["metadata"]["name"])
    return replace(outcome, last_words=read_last_words(pod))


def deleted(pod: str) -> Outcome:
    """The pod was deleted; the message is kubectl's own for an object that isn't there."""
    return Outcome(Reason.POD_DELETED, f'pods "{pod}" not found')


def _was_over(pod: Pod, deletion: Deletion) -> bool:
    """Whether what ended the pod came before its deletion was asked for.

    The deletion is a generation of its own, and a status names the one that it is about (by
    default from 1.34 on; without it nothing can be concluded).
    """
    metadata, status = pod["metadata"], pod.get("status") or {}
    is_unnoticed = 0 < (status.get("observedGeneration") or 0) < (metadata.get("generation") or 0)
    if "deletionTimestamp" not in metadata or is_unnoticed:
        return True
    failed = failed_init(pod)
    of_init = parse_time(failed.terminated.get("finishedAt")) if failed else None
    end = finished_at(pod) or of_init
    return end is not None and deletion.asked_at is not None and end < deletion.asked_at
