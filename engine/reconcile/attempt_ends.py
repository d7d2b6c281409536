"""Tell of each attempt that ended badly, once: as an event of ours and as an Event on its pod."""

from dataclasses import dataclass

from engine.api.model import Job
from engine.cluster.client import Client
from engine.cluster.events import record_event
from engine.decide.pull_cursor import policies_of_attempt
from engine.decide.record import Attempt, Record
from engine.refs import Ref
from engine.status.outcome import Reason
from engine.telemetry.events import AttemptFailed, Emit, PullPolicyFallback

_NO_FAILURE = frozenset({None, Reason.SUCCEEDED, Reason.CANCELLED})


@dataclass(frozen=True, slots=True)
class AttemptEnds:
    """Guarantees: what is told is in the record already, and nothing is told of a write that did
    not end an attempt. Events on pods are best effort; their names make a second one impossible.
    """

    client: Client
    emit: Emit
    on_pods: bool

    def tell(self, job: Job, before: Record | None, record: Record) -> None:
        """`before` and `record` are the record as it was and as it has been written now."""
        attempt = record.last
        if attempt is None or attempt.outcome in _NO_FAILURE or _was_told(before, record, attempt):
            return
        if attempt.failures and not record.state.is_final:
            self._tell_fallback(job, record, attempt)
        else:
            self._tell_failure(job, attempt)

    def _tell_failure(self, job: Job, attempt: Attempt) -> None:
        reason = attempt.outcome or Reason.CANCELLED
        self.emit(AttemptFailed(job.key, attempt.number, attempt.pod, reason, attempt.message))
        told = f"{reason}: {attempt.message}" if attempt.message else reason.value
        self._write(job, attempt, "AttemptFailed", told)

    def _tell_fallback(self, job: Job, record: Record, attempt: Attempt) -> None:
        after = policies_of_attempt(job, record.attempts)
        for failure in attempt.failures:
            change = PullPolicyFallback(
                job.key,
                attempt.number,
                failure.container,
                (attempt.policies or {}).get(failure.container, "default"),
                after.get(failure.container, "default"),
                failure.message,
                failure.pull_class,
            )
            self.emit(change)
            told = (
                f"{change.container}: pull policy {change.before} failed, "
                f"next is {change.after}: {change.message}"
            )
            self._write(job, attempt, "PullPolicyFallback", told, note=f".{change.container}")

    def _write(self, job: Job, attempt: Attempt, reason: str, told: str, note: str = "") -> None:
        if not self.on_pods or not attempt.uid:
            return
        record_event(
            self.client,
            Ref("Pod", job.namespace, attempt.pod),
            attempt.uid,
            reason=reason,
            message=told,
            now=attempt.finished_at or self.client.now(),
            suffix=note,
        )


def _was_told(before: Record | None, record: Record, attempt: Attempt) -> bool:
    """Whether the attempt was over before this write, which was about something else then."""
    if before is None or before.spec_hash != record.spec_hash:
        return False
    return any(a.number == attempt.number and a.outcome is not None for a in before.attempts)
