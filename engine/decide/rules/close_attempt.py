"""Step 5: the attempt has ended, in one of the ways an attempt can; write that down."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

from engine.decide.actions import Action, ConfirmDeleted, RefreshPod, Wait, WriteRecord
from engine.decide.pull_failure import fall_back
from engine.decide.record import Attempt
from engine.decide.rules.restore_dependents import awaits_kubelet
from engine.decide.situation import Pod, Situation, is_terminating
from engine.decide.transitions import deleted_pod, may_retry, with_attempt_closed
from engine.status.containers import finished_at, has_started, started_at
from engine.status.deadline import deadline_at, exceeded_deadline
from engine.status.deletion import read_end
from engine.status.outcome import Outcome, Reason
from engine.status.start import read_start_cause
from engine.status.waiting import read_config_error, read_invalid_image
from engine.times import earliest


def close_attempt(situation: Situation) -> Action | None:
    """Only for an attempt that is under way."""
    attempt = situation.run_record.open_attempt
    if attempt is None:
        return None
    pod = situation.pod_of(attempt.uid)
    if pod is None:
        if attempt.uid not in situation.observed.deleted_uids:
            return ConfirmDeleted(attempt.pod, attempt.uid)
        end = situation.observed.deleted_outcomes.get(attempt.uid)
        return close(situation, attempt, end or deleted_pod(attempt))
    outcome = read_end(pod, situation.deletion_of(attempt.uid))
    if outcome is not None:
        return close(situation, attempt, outcome)
    if is_terminating(pod):
        return Wait()
    for rule in STUCK_RULES:
        action = rule(situation, attempt, pod)
        if isinstance(action, WriteRecord) and not situation.is_fresh(attempt.uid):
            return RefreshPod(attempt.pod, attempt.uid)
        if isinstance(action, Wait):
            return Wait(earliest(action.until, run_deadline(situation, pod)))
        if action is not None:
            return action
    return None


def _close_overdue(situation: Situation, attempt: Attempt, pod: Pod) -> Action | None:
    outcome = read_overdue(situation, pod)
    return close(situation, attempt, outcome) if outcome else None


def _close_invalid_image(situation: Situation, attempt: Attempt, pod: Pod) -> Action | None:
    outcome = read_invalid_image(pod)
    return close(situation, attempt, outcome) if outcome else None


def _close_config_error(situation: Situation, attempt: Attempt, pod: Pod) -> Action | None:
    if awaits_kubelet(situation, pod):
        return None
    outcome = read_config_error(pod)
    return close(situation, attempt, outcome) if outcome else None


def _close_late_start(situation: Situation, attempt: Attempt, pod: Pod) -> Action | None:
    if has_started(pod) or situation.now < start_deadline(situation, attempt, pod):
        return None
    words = f"not started within {situation.job.start_timeout:g}s: {read_start_cause(pod)}"
    return close(situation, attempt, Outcome(Reason.START_TIMEOUT, words))


def read_overdue(situation: Situation, pod: Pod) -> Outcome | None:
    """DeadlineExceeded for a pod that has to be ended by the engine, and now."""
    end = run_deadline(situation, pod)
    if end is None or situation.now < end:
        return None
    return exceeded_deadline(situation.job.deadline_seconds)


def run_deadline(situation: Situation, pod: Pod) -> datetime | None:
    """When the engine has to end the pod; None as long as that is the kubelet's affair."""
    job = situation.job
    if job.has_active_deadline and "activeDeadlineSeconds" in pod["spec"]:
        return None
    return deadline_at(pod, job.deadline_seconds)


def start_deadline(situation: Situation, attempt: Attempt, pod: Pod) -> datetime:
    """When the pod has to have started."""
    return waiting_since(attempt, pod) + timedelta(seconds=situation.job.start_timeout)


def waiting_since(attempt: Attempt, pod: Pod) -> datetime:
    """When the pod began to wait for the cluster: before that, an engine may have been away."""
    created = datetime.fromisoformat(pod["metadata"]["creationTimestamp"])
    return max(created, attempt.claimed_at or created)


def close(situation: Situation, attempt: Attempt, outcome: Outcome) -> WriteRecord:
    """Write down how the attempt ended; whether there is another is up to the job's `retry`."""
    record, pod = situation.run_record, situation.pod_of(attempt.uid)
    if pod is not None and attempt.started_at is None:
        attempt = replace(attempt, started_at=started_at(pod))
    again = may_retry(record, outcome, situation.job.retry)
    end = (finished_at(pod) if pod is not None else None) or situation.now
    return WriteRecord(with_attempt_closed(record, attempt, outcome, end, again=again))


STUCK_RULES: tuple[Callable[[Situation, Attempt, Pod], Action | None], ...] = (
    _close_overdue,
    _close_invalid_image,
    fall_back,
    _close_config_error,
    _close_late_start,
)
