"""The server refused an object: leave nothing behind, say why, and queue or give up."""

from msgspec.structs import replace

from engine.errors import AdmissionRefusedError, ForbiddenError
from engine.lifecycle.actions import Action, RefreshPod, ReportError, WriteRecord
from engine.lifecycle.record import Attempt, Record
from engine.lifecycle.state import LifecycleState, Rejection, gate_position, name_of
from engine.refs import pod_name
from engine.status.outcome import Outcome, Reason


def handle_rejection(state: LifecycleState) -> Action | None:
    """A quota queues the job, with no object but its record; admission is its end; a right that is
    missing is reported, and may be given.

    A pod that waits behind its gate never ran, even if an engine that died had recorded it: its
    attempt is taken back before it goes, so that the pod isn't missed afterwards. A rejection that
    another engine, or an earlier try, has got past is forgotten.
    """
    rejection, record = state.observed.rejection, state.run_record
    if rejection is None or rejection.record_version is not None:
        return None
    if _is_obsolete(state, record, rejection):
        return None
    pod = state.pod_of(rejection.uid)
    if pod is not None and not state.is_fresh(rejection.uid):
        return RefreshPod(name_of(pod), rejection.uid)
    if rejection.kind is AdmissionRefusedError:
        return _give_up(state, record, rejection)
    if record.open_attempt is not None:
        taken_back = replace(record, attempts=record.attempts[:-1])
        return WriteRecord(state.queued(taken_back, rejection))
    if pod is not None:
        return state.delete(pod, rejection.message)
    if state.now >= rejection.retry_at:
        return None
    if rejection.kind is ForbiddenError:
        return ReportError(rejection.message, rejection.hint, rejection.kind)
    if not state.says_queued(rejection):
        return WriteRecord(state.queued(record, rejection))
    return state.wait(rejection.retry_at)


def _is_obsolete(state: LifecycleState, record: Record, rejection: Rejection) -> bool:
    """Whether the pod is there although it was refused, or runs without what was refused."""
    attempt, pod = record.open_attempt, state.pod_of(rejection.uid)
    if attempt is not None and (pod is None or attempt.uid != rejection.uid):
        return True
    if not rejection.uid:
        return state.pod_of_attempt(record.next_number) is not None
    return pod is not None and gate_position(pod) is None


def _give_up(state: LifecycleState, record: Record, rejection: Rejection) -> Action:
    """The record comes first: once it is final, the pod that was made goes with the run."""
    job = state.job
    number = record.next_number
    attempt = record.open_attempt or Attempt(
        number, pod_name(job.name, job.run, number), claimed_at=state.now
    )
    outcome = Outcome(Reason.ADMISSION_REFUSED, rejection.message)
    return WriteRecord(record.with_attempt_closed(attempt, outcome, state.now))
