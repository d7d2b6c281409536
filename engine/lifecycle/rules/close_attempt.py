"""Step 5: the attempt has ended, in one of the ways an attempt can; write that down."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

from engine.lifecycle.actions import Action, RefreshPod, Wait, WriteRecord, wait
from engine.lifecycle.pull_fallback import fall_back
from engine.lifecycle.record import Attempt
from engine.lifecycle.rules.restore_dependents import awaits_kubelet
from engine.lifecycle.state import LifecycleState, Pod, is_terminating
from engine.status.containers import finished_at, has_started, started_at
from engine.status.deadline import deadline_at, exceeded_deadline
from engine.status.deletion import read_end
from engine.status.outcome import Outcome, Reason
from engine.status.start import read_start_cause
from engine.status.waiting import read_config_error, read_invalid_image


def close_attempt(state: LifecycleState) -> Action | None:
    """Only for an attempt that is under way."""
    attempt = state.run_record.open_attempt
    if attempt is None:
        return None
    pod = state.pod_of(attempt.uid)
    if pod is None:
        if attempt.uid not in state.observed.deleted_uids:
            return RefreshPod(attempt.pod, attempt.uid)
        end = state.observed.deleted_outcomes.get(attempt.uid)
        return close(state, attempt, end or attempt.deleted)
    outcome = read_end(pod, state.deletion_of(attempt.uid))
    if outcome is not None:
        return close(state, attempt, outcome)
    if is_terminating(pod):
        return wait(state)
    for rule in STUCK_RULES:
        action = rule(state, attempt, pod)
        if isinstance(action, WriteRecord) and not state.is_fresh(attempt.uid):
            return RefreshPod(attempt.pod, attempt.uid)
        if isinstance(action, Wait):
            return wait(state, action.until, run_deadline(state, pod))
        if action is not None:
            return action
    return None


def _close_overdue(state: LifecycleState, attempt: Attempt, pod: Pod) -> Action | None:
    outcome = read_overdue(state, pod)
    return close(state, attempt, outcome) if outcome else None


def _close_invalid_image(state: LifecycleState, attempt: Attempt, pod: Pod) -> Action | None:
    outcome = read_invalid_image(pod)
    return close(state, attempt, outcome) if outcome else None


def _close_config_error(state: LifecycleState, attempt: Attempt, pod: Pod) -> Action | None:
    if awaits_kubelet(state, pod):
        return None
    outcome = read_config_error(pod)
    return close(state, attempt, outcome) if outcome else None


def _close_late_start(state: LifecycleState, attempt: Attempt, pod: Pod) -> Action | None:
    if has_started(pod) or state.now < start_deadline(state, attempt, pod):
        return None
    words = f"not started within {state.job.start_timeout:g}s: {read_start_cause(pod)}"
    return close(state, attempt, Outcome(Reason.START_TIMEOUT, words))


def read_overdue(state: LifecycleState, pod: Pod) -> Outcome | None:
    """DeadlineExceeded for a pod that has to be ended by the engine, and now."""
    end = run_deadline(state, pod)
    if end is None or state.now < end:
        return None
    return exceeded_deadline(state.job.deadline_seconds)


def run_deadline(state: LifecycleState, pod: Pod) -> datetime | None:
    """When the engine has to end the pod; None as long as that is the kubelet's affair."""
    job = state.job
    if job.has_active_deadline and "activeDeadlineSeconds" in pod["spec"]:
        return None
    return deadline_at(pod, job.deadline_seconds)


def start_deadline(state: LifecycleState, attempt: Attempt, pod: Pod) -> datetime:
    """When the pod has to have started."""
    return waiting_since(attempt, pod) + timedelta(seconds=state.job.start_timeout)


def waiting_since(attempt: Attempt, pod: Pod) -> datetime:
    """When the pod began to wait for the cluster: before that, an engine may have been away."""
    created = datetime.fromisoformat(pod["metadata"]["creationTimestamp"])
    return max(created, attempt.claimed_at or created)


def close(state: LifecycleState, attempt: Attempt, outcome: Outcome) -> WriteRecord:
    """Write down how the attempt ended; whether there is another is up to the job's `retry`."""
    record, pod = state.run_record, state.pod_of(attempt.uid)
    if pod is not None and attempt.started_at is None:
        attempt = replace(attempt, started_at=started_at(pod))
    retry, again = state.job.retry, False
    if outcome.reason in retry.on:
        # Falling back costs no retry.
        again = sum(1 for a in record.attempts if a.outcome in retry.on) < retry.max
    end = (finished_at(pod) if pod is not None else None) or state.now
    return WriteRecord(record.with_attempt_closed(attempt, outcome, end, again=again))


STUCK_RULES: tuple[Callable[[LifecycleState, Attempt, Pod], Action | None], ...] = (
    _close_overdue,
    _close_invalid_image,
    fall_back,
    _close_config_error,
    _close_late_start,
)
