"""The next step for a job, and its cause in words: why it starts, runs again, or is left.

Nothing is decided here, and what a record doesn't say is not guessed.
"""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum

from engine.api.model import Job, OnChange
from engine.lifecycle.actions import (
    Action,
    CreateDependents,
    CreatePod,
    DeletePod,
    Done,
    RemoveSchedulingGate,
    ReportError,
    UpdatePod,
    Wait,
    WriteRecord,
)
from engine.lifecycle.predecessors import waiting_words
from engine.lifecycle.record import FIRST_RUN, Record
from engine.lifecycle.state import LifecycleState
from engine.refs import pod_name
from engine.status.outcome import Reason, State

_WORDS: Mapping[type[Action], str] = {
    DeletePod: "delete pod {0.pod}: {0.why}",
    CreateDependents: "create what pod {0.pod} owns and lacks",
    RemoveSchedulingGate: "remove the scheduling gate of pod {0.pod}",
}


class PlannedAction(StrEnum):
    """What a reconcile would do about a job."""

    START = "start"
    """Create a pod, while nothing of the job runs."""
    REPLACE = "replace"
    """End the run that is under way, then create a pod."""
    CONTINUE = "continue"
    """Write something about a run that has begun."""
    LEAVE = "leave"
    """Write nothing."""
    FAIL = "fail"
    """Refuse the job."""


def planned_action(state: LifecycleState, action: Action) -> PlannedAction:
    """The kind of an action: what closes an old run is already part of the new one."""
    record = state.record
    is_new_run = record is None or not record.is_of(state.job)
    match action:
        case ReportError():
            return PlannedAction.FAIL
        case CreatePod():
            return PlannedAction.START
        case Wait(until) if _waits_to_start(state, until):
            return PlannedAction.START
        case Done() | Wait():
            return PlannedAction.LEAVE
        case WriteRecord(after) if state.job.suspend or after.reason is Reason.DEPENDENCY_FAILED:
            return PlannedAction.CONTINUE
        case WriteRecord(after) if waiting_words(state.observed.predecessors):
            return PlannedAction.START
        case DeletePod() if is_new_run:
            return PlannedAction.REPLACE
        case WriteRecord(after) if is_new_run:
            is_replaced = after.reason is Reason.SUPERSEDED
            return PlannedAction.REPLACE if is_replaced else PlannedAction.START
        case _:
            return PlannedAction.CONTINUE


def _waits_to_start(state: LifecycleState, until: datetime | None) -> bool:
    """Whether the next attempt is created in time, or once a pod that is about to end is gone."""
    record = state.record
    is_due = record is None or (record.open_attempt is None and not state.run_record.state.is_final)
    return is_due and (until is not None or any(state.other_pods("")))


def fields_changed(job: Job, record: Record | None) -> tuple[str, ...]:
    """The fields in which the spec differs from the one that ran last, as far as that is known."""
    if record is None or record.is_of(job):
        return ()
    return record.tried_anew(job) or record.changed_fields(job)


def explain_start(job: Job, record: Record | None) -> str:
    """Why a pod would be created, by the record that is there."""
    if record is None:
        return FIRST_RUN
    if not record.is_of(job):
        return record.run_of(job).cause
    last = record.last
    if last is not None and last.outcome is not None:
        return f"attempt {record.position(last)} ended: {last.outcome}{_cause(last.message)}"
    if record.state is State.QUEUED and record.message:
        return f"queued: {record.message}"
    return record.cause or "has not started yet"


def explain_rest(job: Job, record: Record | None, action: Action) -> str:
    """Why nothing would be written: the run is over, under way, or waits."""
    attempt = record.open_attempt if record else None
    if record is not None and record.spec_hash != job.spec_hash and attempt is not None:
        policy = " (onChange: Wait)" if job.on_change is OnChange.WAIT else ""
        return f"pod {attempt.pod} ends first{policy}: {explain_start(job, record)}"
    if record is not None and record.state.is_final:
        return f"{record.state}, spec unchanged{_cause(record.message)}"
    if record is not None and attempt is not None:
        return f"{record.state} in pod {attempt.pod}"
    if record is not None and record.state is State.QUEUED and record.message:
        return f"{record.state}: {record.message}"
    if isinstance(action, Wait) and action.until is not None and record is not None:
        return f"waits until {action.until:%H:%M:%S}: {explain_start(job, record)}"
    return "waits for the cluster"


def describe_action(state: LifecycleState, action: Action) -> str:
    """The write of an action, in words; "" where it has none."""
    job, before = state.job, state.record
    if isinstance(action, CreatePod):
        return f"create pod {pod_name(job.name, job.run, action.attempt)}"
    if isinstance(action, UpdatePod):
        return f"update pod {action.pod} in place: {', '.join(action.fields)}"
    if not isinstance(action, WriteRecord):
        return _WORDS.get(type(action), "").format(action)
    record = action.record
    if before is not None and before.annotations != record.annotations:
        return "record that the spec is back"
    last = record.last
    if last is not None and last.outcome is not None:
        return f"record attempt {record.position(last)}: {last.outcome}{_cause(last.message)}"
    return f"record the job as {record.state}{_cause(record.message)}"


def _cause(message: str) -> str:
    return f": {message}" if message else ""
