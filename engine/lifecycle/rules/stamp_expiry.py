"""A pod whose outcome is recorded gets the time until which that outcome is worth keeping it."""

from datetime import datetime, timedelta

from engine.api.model import Job
from engine.lifecycle.actions import StampExpiry
from engine.lifecycle.record import Record
from engine.lifecycle.state import LifecycleState, Pod, has_ended, is_terminating, name_of, uid_of
from engine.status.outcome import Reason
from engine.times import format_time
from engine.wellknown import EXPIRES_AT


def stamp_expiry(state: LifecycleState) -> StampExpiry | None:
    """Only where the spec has a `ttlAfterFinished` for how the attempt ended, and only once."""
    record = state.run_record
    if not record.state.is_final:
        return None
    for pod in state.observed.pods:
        at = expiry_due(state.job, record, pod)
        if at is not None:
            annotated = "annotations" in pod["metadata"]
            return StampExpiry(name_of(pod), uid_of(pod), str(format_time(at)), annotated)
    return None


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
