"""A run that is over stays over; the pod of an attempt that got stuck does not stay behind."""

from datetime import datetime, timedelta

from engine.api.model import Job
from engine.lifecycle.actions import Action, Done, StampExpiry, Wait
from engine.lifecycle.record import Record
from engine.lifecycle.rules.resolve_unrecorded import is_discardable
from engine.lifecycle.state import LifecycleState, Pod, has_ended, is_terminating, name_of, uid_of
from engine.status.outcome import Reason
from engine.times import format_time
from engine.wellknown import EXPIRES_AT


def finish_run(state: LifecycleState) -> Action | None:
    """Only for a run in its final state.

    A pod that has ended is left to its TTL, with its log; one whose outcome has a
    `ttlAfterFinished` gets the time until which it is kept. One that has not ended, although its
    attempt is closed, waits for an image or serves a job that is done: it goes. Its going is not
    waited for, since nothing else depends on it. Nor does one stay that was never recorded; what
    runs and isn't in the record is not the engine's to delete.
    """
    record = state.run_record
    if not record.state.is_final:
        return None
    for pod in state.observed.pods:
        if (at := expiry_due(state.job, record, pod)) is not None:
            annotated = "annotations" in pod["metadata"]
            return StampExpiry(name_of(pod), uid_of(pod), str(format_time(at)), annotated)
    for pod in state.observed.pods:
        if not has_ended(pod) and (state.is_owned(pod) or is_discardable(state, pod)):
            removal = state.delete(pod, f"its attempt ended: {record.reason}")
            if not isinstance(removal, Wait):
                return removal
    return Done()


def expiry_due(job: Job, record: Record, pod: Pod) -> datetime | None:
    """When `pod` should expire, if that is known and isn't written on it yet."""
    if not job.ttl_after_finished or not has_ended(pod) or is_terminating(pod):
        return None
    if EXPIRES_AT in (pod["metadata"].get("annotations") or {}):
        return None
    attempt = next((a for a in record.attempts if a.uid == uid_of(pod)), None)
    if attempt is None or attempt.outcome is None or attempt.finished_at is None:
        return None
    end = "success" if attempt.outcome is Reason.SUCCEEDED else "failure"
    ttl = job.ttl_after_finished.get(end)
    return None if ttl is None else attempt.finished_at + timedelta(seconds=ttl)
