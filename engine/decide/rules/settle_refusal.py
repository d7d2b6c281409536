"""The server refused an object: leave nothing behind, record why, and queue or give up."""

from dataclasses import replace

from engine.decide.actions import Action, LookAgain, Wait, WriteRecord, delete_pod_action
from engine.decide.record import Attempt, Record
from engine.decide.situation import (
    Refusal,
    RefusalKind,
    Situation,
    gate_position,
    name_of,
)
from engine.decide.transitions import with_attempt_closed
from engine.refs import pod_name
from engine.status.outcome import Outcome, Reason, State


def settle_refusal(situation: Situation) -> Action | None:
    """A quota queues the job, with no object but its record; any other refusal is its end.

    A pod that waits behind its gate never ran, even if an engine that died had recorded it: its
    attempt is taken back before it goes, so that the pod isn't missed afterwards. A refusal that
    another engine, or an earlier try, has got past is forgotten.
    """
    refusal, record = situation.observed.refusal, situation.run_record
    if refusal is None or _is_overtaken(situation, record, refusal):
        return None
    started = record.open_attempt
    pod = situation.pod_of(refusal.uid)
    if pod is not None and not situation.is_fresh(refusal.uid):
        return LookAgain(name_of(pod), refusal.uid)
    if refusal.kind is RefusalKind.ADMISSION:
        return _give_up(situation, record, refusal)
    if started is not None:
        attempts = tuple(a for a in record.attempts if a.number != started.number)
        return WriteRecord(_queued(situation, replace(record, attempts=attempts), refusal))
    if pod is not None:
        return delete_pod_action(situation, pod, refusal.message)
    if record.state is not State.QUEUED or record.message != refusal.message:
        return WriteRecord(_queued(situation, record, refusal))
    return Wait(refusal.retry_at) if situation.now < refusal.retry_at else None


def _is_overtaken(situation: Situation, record: Record, refusal: Refusal) -> bool:
    """Whether the pod is there although it was refused, or runs without what was refused."""
    attempt, pod = record.open_attempt, situation.pod_of(refusal.uid)
    if attempt is not None and (pod is None or attempt.uid != refusal.uid):
        return True
    if not refusal.uid:
        return situation.pod_of_attempt(record.next_number) is not None
    return pod is not None and gate_position(pod) is None


def _queued(situation: Situation, record: Record, refusal: Refusal) -> Record:
    return replace(
        record,
        state=State.QUEUED,
        reason=Reason.QUOTA_EXCEEDED,
        message=refusal.message,
        queued_at=record.queued_at or situation.now,
    )


def _give_up(situation: Situation, record: Record, refusal: Refusal) -> Action:
    """The record comes first: once it is final, the pod that was made goes with the run."""
    job = situation.job
    number = record.next_number
    attempt = record.open_attempt or Attempt(
        number, pod_name(job.name, job.run, number), claimed_at=situation.now
    )
    outcome = Outcome(Reason.ADMISSION_REFUSED, refusal.message)
    return WriteRecord(with_attempt_closed(record, attempt, outcome, situation.now))
