"""How a job is kept is written onto its pod in place, and a shorter timeout onto one that runs.

What another hand wrote there stays until the spec changes: the pod's mark says what the engine did.
"""

from datetime import timedelta

from engine.api.model import Job
from engine.lifecycle.actions import UpdatePod
from engine.lifecycle.record import Attempt, Record
from engine.lifecycle.state import (
    LifecycleState,
    Pod,
    gate_position,
    has_ended,
    is_terminating,
    name_of,
    uid_of,
)
from engine.status.outcome import Reason
from engine.times import format_time
from engine.transform.set_ttl_annotation import (
    is_protected,
    kept_mark,
    kept_metadata,
    read_mark,
)
from engine.wellknown import DISRUPTION, EXPIRES_AT, LAST_APPLIED

Changes = dict[str, dict[str, str | None]]


def update_pod(state: LifecycleState) -> UpdatePod | None:
    """For every pod of the run that is still there, one after the other.

    Unless it was refused, or another process has written its own over it.
    """
    for pod in state.observed.pods:
        update = pod_update(state.job, state.run_record, pod)
        if update is not None and state.observed.given_up.isdisjoint((update.uid, update.once)):
            return update
    return None


def pod_update(job: Job, record: Record, pod: Pod) -> UpdatePod | None:
    """What of `pod` is not as its spec has it by now; None where nothing is."""
    uid = uid_of(pod)
    attempt = next((one for one in record.attempts if one.uid == uid), None)
    if attempt is None or is_terminating(pod) or gate_position(pod) is not None:
        return None
    changes, deadline = _changes(job, attempt, pod), None
    longest = pod["spec"].get("activeDeadlineSeconds", 0) if attempt.is_open else 0
    if job.features.active_deadline_seconds and longest > job.deadline_seconds:
        deadline = job.deadline_seconds
    if deadline is None and not any(changes.values()):
        return None
    return UpdatePod(name_of(pod), uid, **changes, deadline=deadline)


def _changes(job: Job, attempt: Attempt, pod: Pod) -> Changes:
    """Of labels and annotations: the new value, or None for what is to be removed.

    A pod without a mark is in another hand, and left as it is.
    """
    live = pod["metadata"].get("annotations") or {}
    changes: Changes = {"labels": {}, "annotations": {}}
    before = live.get(LAST_APPLIED)
    if before is None:
        return changes
    last = read_mark(before)
    protects = is_protected(job) if attempt.is_open else ("labels", DISRUPTION) in last
    wanted = kept_metadata(job, protects=protects)
    at, is_free = _expires_at(job, attempt, pod), EXPIRES_AT not in live
    if at is not None and (is_free or ("annotations", EXPIRES_AT) in last):
        wanted["annotations"][EXPIRES_AT] = at
    mark = kept_mark(wanted)
    now = read_mark(mark)
    for field, key in {**now, **last}:
        if now.get((field, key)) != last.get((field, key)):
            changes[field][key] = wanted[field].get(key)
    if mark != before:
        changes["annotations"][LAST_APPLIED] = mark
    return changes


def _expires_at(job: Job, attempt: Attempt, pod: Pod) -> str | None:
    """When `pod` should expire, if `ttlAfterFinished` has a time for how its attempt ended."""
    if attempt.finished_at is None or not has_ended(pod):
        return None
    end = "success" if attempt.outcome is Reason.SUCCEEDED else "failure"
    ttl = job.ttl_after_finished.get(end)
    return None if ttl is None else format_time(attempt.finished_at + timedelta(seconds=ttl))
