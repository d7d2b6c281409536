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
from engine.transform.set_ttl_annotation import PROTECTION, is_protected, kept_mark, kept_metadata
from engine.wellknown import (
    DISRUPTION,
    EXPIRES_AT,
    HOLD,
    LAST_APPLIED,
    MANAGED_BY,
    NOT_EVICTED,
    PROTECT,
    RESERVED_PREFIX,
)

Changes = dict[str, dict[str, str | None]]
_STAMP = f"annotations/{EXPIRES_AT}"


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
    if job.has_active_deadline and attempt.is_open and not has_ended(pod):
        longest = pod["spec"].get("activeDeadlineSeconds")
        if longest is not None and longest > job.deadline_seconds:
            deadline = job.deadline_seconds
    if deadline is None and not any(changes.values()):
        return None
    return UpdatePod(name_of(pod), uid, **changes, deadline=deadline)


def _changes(job: Job, attempt: Attempt, pod: Pod) -> Changes:
    """Of labels and annotations: the new value, or None for what is to be removed."""
    live = {field: pod["metadata"].get(field) or {} for field in ("labels", "annotations")}
    changes: Changes = {field: {} for field in live}
    before, kept = live["annotations"].get(LAST_APPLIED, ""), kept_metadata(job)
    mark, applied = kept_mark(kept), before.split()[1:]
    if before and before.split()[0] != mark.split()[0]:
        for field, wanted in kept.items():
            values = live[field]
            changes[field] |= {k: v for k, v in wanted.items() if values.get(k) != v}
        for name in applied:
            field, _, key = name.partition("/")
            is_own = key == MANAGED_BY or (key.startswith(RESERVED_PREFIX) and key != HOLD)
            if key in live.get(field, ()) and key not in kept[field] and not is_own:
                changes[field][key] = None
    was_protected = protects = PROTECTION in applied
    if before and attempt.is_open and not has_ended(pod):
        protects = is_protected(job)
    if protects is not was_protected:
        changes["labels"][DISRUPTION] = PROTECT if protects else None
        for key in NOT_EVICTED.keys() - kept["annotations"].keys():
            changes["annotations"][key] = NOT_EVICTED[key] if protects else None
    at, stamp = _expires_at(job, attempt, pod), live["annotations"].get(EXPIRES_AT)
    if at != stamp and (stamp is None or _STAMP in applied):
        changes["annotations"][EXPIRES_AT] = at
    if before:
        mark += f" {PROTECTION}" if protects else ""
        if at is not None and (stamp is None or _STAMP in applied):
            mark += f" {_STAMP}"
        if mark != before:
            changes["annotations"][LAST_APPLIED] = mark
    return changes


def _expires_at(job: Job, attempt: Attempt, pod: Pod) -> str | None:
    """When `pod` should expire, if `ttlAfterFinished` has a time for how its attempt ended."""
    if attempt.outcome is None or attempt.finished_at is None or not has_ended(pod):
        return None
    end = "success" if attempt.outcome is Reason.SUCCEEDED else "failure"
    ttl = job.ttl_after_finished.get(end)
    return None if ttl is None else format_time(attempt.finished_at + timedelta(seconds=ttl))
