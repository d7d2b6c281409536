"""Why a job would start, run again, or be left as it is: `decide`'s answer, in words.

Nothing is decided here. What a record doesn't say is not guessed: of a spec that ran under 0.1
nobody knows which field has changed.
"""

from collections.abc import Sequence

from engine.api.model import Job, OnChange
from engine.api.spec_hash import changed_fields
from engine.decide.actions import (
    Action,
    AdoptPod,
    CreateDependents,
    CreatePod,
    DeletePod,
    MarkBack,
    RemoveSchedulingGate,
    RestoreDependents,
    RestoreLabels,
    StampExpiry,
    Wait,
    WriteRecord,
)
from engine.decide.record import Record
from engine.refs import pod_name
from engine.status.outcome import Reason, State

_RERUN = ("spec.rerun",)


def fields_changed(job: Job, record: Record | None) -> tuple[str, ...]:
    """The fields in which the spec differs from the one that ran last, as far as that is known."""
    if record is None or record.spec_hash == job.spec_hash or not record.spec_fields:
        return ()
    return changed_fields(record.spec_fields, job.spec_fields)


def explain_start(job: Job, record: Record | None) -> str:
    """Why a pod would be created, as the `record` from before says."""
    if record is None:
        return "no record"
    if record.spec_hash != job.spec_hash:
        return f"runs again: {_change(job, record)}"
    last = record.last
    if last is not None and last.outcome is not None:
        return f"attempt {last.number} ended: {last.outcome}{_told(last.message)}"
    if record.state is State.QUEUED and record.message:
        return f"queued: {record.message}"
    if record.history and record.history[0].run == record.run:
        return "runs again: asked for with engine rerun"
    return "has not started yet"


def explain_rest(job: Job, record: Record | None, action: Action) -> str:
    """Why nothing would be written: the run is over, under way, or waits."""
    attempt = record.open_attempt if record else None
    if record is not None and record.spec_hash != job.spec_hash and attempt is not None:
        waits = f"pod {attempt.pod} comes to its end first"
        policy = " (onChange: Wait)" if job.on_change is OnChange.WAIT else ""
        return f"{waits}{policy}; then it {explain_start(job, record)}"
    if record is not None and record.spec_hash != job.spec_hash:
        return f"waits for the cluster; then it {explain_start(job, record)}"
    if record is not None and record.state.is_final:
        return f"{record.state}, spec unchanged{_told(record.message)}"
    if record is not None and attempt is not None:
        return f"{record.state} in pod {attempt.pod}"
    if isinstance(action, Wait) and action.until is not None and record is not None:
        return f"waits until {action.until:%H:%M:%S}: {explain_start(job, record)}"
    return "waits for the cluster"


def describe_step(job: Job, action: Action) -> str:
    """What one write would do, in words."""
    match action:
        case CreatePod(attempt):
            return f"create pod {pod_name(job.name, job.run, attempt)}"
        case WriteRecord(record):
            return f"record {_of_record(record)}"
        case DeletePod(pod, _, _, why):
            return f"delete pod {pod}: {why}"
        case CreateDependents(_, pod):
            return f"make sure that what pod {pod} owns is there"
        case RemoveSchedulingGate(pod):
            return f"remove the scheduling gate of pod {pod}"
        case AdoptPod(_, pod):
            return f"adopt pod {pod}, which is in no record"
        case RestoreDependents(_, pod):
            return f"make again what pod {pod} owns and somebody has deleted"
        case RestoreLabels(pod):
            return f"put back labels of pod {pod}"
        case MarkBack():
            return "take out of the record that the spec is gone"
        case StampExpiry(pod, _, at):
            return f"have pod {pod} expire at {at}"
        case _:
            return type(action).__name__


def replaces(steps: Sequence[Action]) -> bool:
    """Whether the steps cancel an earlier run, or delete its pod, before they create one."""
    ended = any(
        isinstance(step, DeletePod)
        or (isinstance(step, WriteRecord) and step.record.reason is Reason.CANCELLED)
        for step in steps
    )
    return ended and any(isinstance(step, CreatePod) for step in steps)


def _change(job: Job, record: Record) -> str:
    fields = fields_changed(job, record)
    if fields == _RERUN:
        return "rerun token"
    if fields:
        return f"spec changed at {', '.join(fields)}"
    return "spec changed; where, its record doesn't say"


def _of_record(record: Record) -> str:
    last = record.last
    if last is not None and last.outcome is not None:
        return f"attempt {last.number}: {last.outcome}{_told(last.message)}"
    return f"the job as {record.state}"


def _told(message: str) -> str:
    return f": {message}" if message else ""
