"""Steps 1 to 3 of an attempt: create the gated pod, create what it owns, record it."""

from datetime import datetime, timedelta

from msgspec.structs import replace

from engine.lifecycle.actions import Action, CreateDependents, CreatePod, RefreshPod, WriteRecord
from engine.lifecycle.pull_fallback import fall_back_without_pod, images_of_nodes
from engine.lifecycle.record import Attempt, Record
from engine.lifecycle.rules.close_attempt import is_ended_by_kubelet
from engine.lifecycle.state import (
    LifecycleState,
    Pod,
    has_ended,
    held_by,
    is_terminating,
    policies_of,
    uid_of,
)
from engine.refs import pod_name
from engine.status.outcome import Reason, State
from engine.times import earliest

_OF_ITS_OWN = (Reason.SUCCEEDED, Reason.SCRIPT_FAILED)
"""With another outcome the pod may not have been over when it was written."""
_RECORDED_AFTER = timedelta(seconds=5)
_CONFIRMATION = timedelta(seconds=10)
"""After its grace: by then even a busy kubelet, if it is there, has reported the pod's end."""


def start_attempt(state: LifecycleState) -> Action | None:
    """None once the attempt's pod is in the record."""
    record = state.run_record
    if record.open_attempt is not None:
        return None
    number = record.next_number
    if (leftover := _remove_leftover(state, number)) is not None:
        return leftover
    pod = state.pod_of_attempt(number)
    if pod is not None:
        return _own_and_record(state, record, number, pod)
    if state.record is not None and (look := _look_for_previous(state, state.record)) is not None:
        return look
    at = record.last.retry_at if record.last is not None else None
    if at is not None and state.now < at:
        return state.wait(at)
    rejection = state.rejected_record()
    if rejection and not state.says_queued(rejection):
        # Where there is no room for the record, no second pod is made in vain.
        return WriteRecord(state.queued(record, rejection))
    if (waiting := _wait_for_image(state, record)) is not None:
        return waiting
    policies = record.next_policies(state.job)
    images, fence = images_of_nodes(record.attempts, policies), record.next_fence(state.now)
    return CreatePod(number, policies, images, fence)


def _look_for_previous(state: LifecycleState, record: Record) -> RefreshPod | None:
    """Only for a pod that had not ended of its own, and that only a watch says is gone.

    A watch says so of a pod without labels, too.
    """
    if record.last is not None:
        name, uid, end = record.last.pod, record.last.uid, record.last.outcome
    elif record.history:
        past = record.history[0]
        name, uid = pod_name(state.job.name, past.run, past.last_number), past.uid
        end = past.reason
    else:
        return None
    is_known = state.pod_of(uid) is not None or uid in state.observed.deleted_uids
    return RefreshPod(name, uid) if uid and end not in _OF_ITS_OWN and not is_known else None


def _remove_leftover(state: LifecycleState, number: int) -> Action | None:
    """The pod of the attempt before goes first, so that two never run at once.

    A pod on a lost node is not waited for: no kubelet confirms its end. A node from which a taint
    drives its pods may be there all the same, so it gets the time that it needs.
    """
    wanted = state.pod_of_attempt(number)
    for pod in state.other_pods(uid_of(wanted) if wanted else ""):
        ends = {a.uid: a.outcome for a in state.run_record.attempts}
        if not is_terminating(pod) or ends.get(uid_of(pod)) is not Reason.NODE_LOST:
            return state.delete(pod, "its attempt is over")
        confirmed = datetime.fromisoformat(pod["metadata"]["deletionTimestamp"]) + _CONFIRMATION
        if state.now < confirmed:
            return state.wait(confirmed)
    return None


def _own_and_record(state: LifecycleState, record: Record, number: int, pod: Pod) -> Action:
    if is_terminating(pod) and not has_ended(pod):
        return state.wait()
    name, uid = pod_name(state.job.name, record.run, number), uid_of(pod)
    if uid not in state.observed.dependents_ready and not has_ended(pod):
        return CreateDependents(name, uid, number, record.next_policies(state.job))
    attempt = Attempt(number, name, uid, policies_of(pod), state.now)
    gates = held_by(pod)
    started = replace(
        record.with_attempt(attempt),
        state=State.QUEUED if gates else State.STARTING,
        reason=None,
        message=gates,
        refused="",
        queued_at=record.queued_at or state.now,
        fence=record.next_fence(state.now),
        spec_fields=state.job.spec_fields,
        defaulted_fields=state.job.defaulted_fields,
        engine=state.engine,
        kept_timeout=0 if is_ended_by_kubelet(state, pod) else state.job.deadline_seconds,
    )
    return WriteRecord(started)


def _wait_for_image(state: LifecycleState, record: Record) -> Action | None:
    """An attempt whose image another job pulls first waits for it, without a pod; see `PullScout`.

    The record says so only once that takes long: most images are there before anybody looks. The
    status of a JobSpec object that says already that a quota has no room stays as it is. What has
    failed for another job has failed.
    """
    holds = state.observed.image_holds
    if any(hold.failure is not None for hold in holds):
        return fall_back_without_pod(state)
    if not holds:
        return None
    hold, due = holds[0], earliest(*(one.due for one in holds))
    recorded_at = hold.since + _RECORDED_AFTER
    if record.reason is Reason.WAITING_FOR_IMAGE or (state.job.object and record.refused):
        return state.wait(due)
    if state.now < recorded_at:
        return state.wait(due, recorded_at)
    words = f"image {hold.image} is pulled by job {hold.scout} first"
    since = record.queued_at or state.now
    return WriteRecord(record.queued(words, since, Reason.WAITING_FOR_IMAGE))
