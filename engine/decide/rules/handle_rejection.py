"""The server refused an object: leave nothing behind, say why, and queue or give up."""

from dataclasses import replace

from engine.decide.actions import (
    Action,
    RefreshPod,
    ReportRejection,
    Wait,
    WriteRecord,
    delete_pod_action,
)
from engine.decide.record import Attempt, Record
from engine.decide.situation import (
    Rejection,
    RejectionKind,
    Situation,
    gate_position,
    name_of,
)
from engine.decide.transitions import queued, with_attempt_closed
from engine.refs import pod_name
from engine.status.outcome import Outcome, Reason, State


def handle_rejection(situation: Situation) -> Action | None:
    """A quota queues the job, with no object but its record; admission is its end; a right that is
    missing is reported, and may be given.

    A pod that waits behind its gate never ran, even if an engine that died had recorded it: its
    attempt is taken back before it goes, so that the pod isn't missed afterwards. A rejection that
    another engine, or an earlier try, has got past is forgotten.
    """
    rejection, record = situation.observed.rejection, situation.run_record
    if rejection is None or rejection.record_version is not None:
        return None
    if _is_obsolete(situation, record, rejection):
        return None
    started = record.open_attempt
    pod = situation.pod_of(rejection.uid)
    if pod is not None and not situation.is_fresh(rejection.uid):
        return RefreshPod(name_of(pod), rejection.uid)
    if rejection.kind is RejectionKind.ADMISSION:
        return _give_up(situation, record, rejection)
    if started is not None:
        attempts = tuple(a for a in record.attempts if a.number != started.number)
        taken_back = replace(record, attempts=attempts)
        return WriteRecord(queued(taken_back, rejection, situation.now))
    if pod is not None:
        return delete_pod_action(situation, pod, rejection.message)
    is_due = situation.now >= rejection.retry_at
    if rejection.kind is RejectionKind.RIGHTS:
        return None if is_due else ReportRejection(rejection)
    if record.state is not State.QUEUED or record.message != rejection.message:
        return WriteRecord(queued(record, rejection, situation.now))
    return None if is_due else Wait(rejection.retry_at)


def _is_obsolete(situation: Situation, record: Record, rejection: Rejection) -> bool:
    """Whether the pod is there although it was refused, or runs without what was refused."""
    attempt, pod = record.open_attempt, situation.pod_of(rejection.uid)
    if attempt is not None and (pod is None or attempt.uid != rejection.uid):
        return True
    if not rejection.uid:
        return situation.pod_of_attempt(record.next_number) is not None
    return pod is not None and gate_position(pod) is None


def _give_up(situation: Situation, record: Record, rejection: Rejection) -> Action:
    """The record comes first: once it is final, the pod that was made goes with the run."""
    job = situation.job
    number = record.next_number
    attempt = record.open_attempt or Attempt(
        number, pod_name(job.name, job.run, number), claimed_at=situation.now
    )
    outcome = Outcome(Reason.ADMISSION_REFUSED, rejection.message)
    return WriteRecord(with_attempt_closed(record, attempt, outcome, situation.now))
