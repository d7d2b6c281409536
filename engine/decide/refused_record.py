"""The server refused the record: that is a refusal of the job, and nothing of the attempt stays.

A job that can't be recorded must not run. Nor is there a place to keep why, so the engine says it
itself, for as long as it is there. The next try writes the record before it creates a pod: where
there is no room for it, a pod is made in vain only once.
"""

from engine.decide.actions import (
    Action,
    CreateDependents,
    CreatePod,
    DeletePod,
    RefreshPod,
    RemoveSchedulingGate,
    ReportRejection,
    Wait,
    WriteRecord,
    delete_pod_action,
)
from engine.decide.situation import Rejection, RejectionKind, Situation, gate_position, uid_of
from engine.decide.transitions import queued
from engine.status.outcome import State

_TO_START = CreatePod | CreateDependents | RemoveSchedulingGate | WriteRecord
"""Each may be refused in turn, and that could not be recorded either."""


def heed_refused_record(situation: Situation, action: Action) -> Action:
    """`action`, or what takes its place until somebody has written the record.

    Only what is still gated and in no record is removed; what runs is never touched. A quota makes
    the job wait for room, unless something of it is under way.
    """
    rejection = _pending(situation)
    if rejection is None or not isinstance(action, _TO_START):
        return action
    record, is_due = situation.run_record, situation.now >= rejection.retry_at
    if record.open_attempt is None and (removal := _remove_unrecorded(situation, rejection)):
        return removal
    instead = queued(record, rejection, situation.now)
    if isinstance(action, CreatePod):
        is_written = record.state is State.QUEUED and record.message == rejection.message
        if is_written and is_due:
            return action
        action = WriteRecord(instead)
    if is_due:
        return action
    if rejection.kind is RejectionKind.QUOTA and record.open_attempt is None:
        return Wait(rejection.retry_at, instead)
    return ReportRejection(rejection)


def _pending(situation: Situation) -> Rejection | None:
    """Obsolete once the record has another version: whoever wrote it, there is room for it."""
    rejection, record = situation.observed.rejection, situation.record
    version = record.version if record is not None else ""
    return rejection if rejection and rejection.record_version == version else None


def _remove_unrecorded(situation: Situation, rejection: Rejection) -> DeletePod | RefreshPod | None:
    recorded = situation.record.pod_uids if situation.record is not None else frozenset[str]()
    for pod in situation.other_pods(""):
        if gate_position(pod) is not None and uid_of(pod) not in recorded:
            removal = delete_pod_action(situation, pod, rejection.message)
            if not isinstance(removal, Wait):
                return removal
    return None
