"""The server refused an object: leave nothing behind, record why, and queue or give up."""

from dataclasses import replace

from engine.decide.actions import Action, Wait, WriteRecord
from engine.decide.outcomes import closed
from engine.decide.record import Attempt
from engine.decide.removal import remove_pod
from engine.decide.situation import Refusal, RefusalKind, Situation
from engine.refs import pod_name
from engine.status.outcome import Outcome, Reason, State


def settle_refusal(situation: Situation) -> Action | None:
    """A quota queues the job, with no object but its record; any other refusal is its end."""
    refusal = situation.observed.refusal
    if refusal is None:
        return None
    for pod in situation.other_pods(""):
        return remove_pod(pod, refusal.message)
    if refusal.kind is RefusalKind.ADMISSION:
        return _give_up(situation, refusal)
    record = situation.run_record
    if record.state is not State.QUEUED or record.message != refusal.message:
        queued = replace(
            record,
            state=State.QUEUED,
            reason=Reason.QUOTA_EXCEEDED,
            message=refusal.message,
            queued_at=record.queued_at or situation.now,
        )
        return WriteRecord(queued)
    return Wait(refusal.retry_at) if situation.now < refusal.retry_at else None


def _give_up(situation: Situation, refusal: Refusal) -> WriteRecord:
    record, job = situation.run_record, situation.job
    number = len([a for a in record.attempts if not a.is_open]) + 1
    attempt = Attempt(number, pod_name(job.name, job.run, number), claimed_at=situation.now)
    outcome = Outcome(Reason.ADMISSION_REFUSED, refusal.message)
    return WriteRecord(closed(record, attempt, outcome, situation.now))
