"""Step 5: the attempt has ended; write down how."""

import math
from datetime import datetime, timedelta

from msgspec.structs import replace

from engine.lifecycle.actions import Action, RefreshPod, Wait, WriteRecord
from engine.lifecycle.record import Attempt, Record
from engine.lifecycle.retry import close_or_retry
from engine.lifecycle.state import LifecycleState, Pod, held_end, is_terminating
from engine.status.containers import finished_at, started_at
from engine.status.deadline import exceeded_deadline
from engine.status.deletion import UNSEEN, deleted, read_end
from engine.status.last_words import read_last_words
from engine.status.outcome import Outcome, Reason
from engine.times import parse_time


def close_attempt(state: LifecycleState) -> Action | None:
    """For a pod that has ended, or is gone; one that is being deleted is waited for."""
    end = attempt_end(state, state.attempt)
    if isinstance(end, Outcome):
        return close(state, end)
    return end or (state.wait() if is_terminating(state.pod) else None)


def attempt_end(state: LifecycleState, attempt: Attempt) -> Outcome | RefreshPod | None:
    """How the attempt's pod ended; only the API itself can say that one is gone."""
    uid, observed = attempt.uid, state.observed
    pod = state.pod_of(uid)
    if pod is not None:
        return read_end(pod, observed.deletions.get(uid, UNSEEN)) or held_end(pod)
    if uid not in observed.deleted_uids:
        return RefreshPod(attempt.pod, uid)
    return observed.deleted_outcomes.get(uid) or deleted(attempt.pod)


def see_through(state: LifecycleState, record: Record) -> WriteRecord | RefreshPod | Wait | None:
    """To the end of another run's open attempt, by the timeout that it was started with."""
    attempt = record.open_attempt
    if attempt is None:
        return None
    end, pod = attempt_end(state, attempt), state.pod_of(attempt.uid)
    if end is None and pod is not None:
        end = read_overdue(state, pod)
        if end is None:
            return state.wait(run_deadline(state, pod))
        if not state.is_fresh(attempt.uid):
            return RefreshPod(attempt.pod, attempt.uid)
    if isinstance(end, Outcome):
        return WriteRecord(record.with_attempt_closed(attempt, end, state.now))
    return end


def read_overdue(state: LifecycleState, pod: Pod) -> Outcome | None:
    """DeadlineExceeded for a pod that has to be ended by the engine, and now."""
    end = run_deadline(state, pod)
    if end is None or state.now < end:
        return None
    return exceeded_deadline(_timeout(state))


def run_deadline(state: LifecycleState, pod: Pod) -> datetime | None:
    """When the engine has to end the pod; None as long as that is the kubelet's affair.

    Counted as the kubelet counts activeDeadlineSeconds: from when it took up the pod.
    """
    if is_ended_by_kubelet(state, pod):
        return None
    began = parse_time((pod.get("status") or {}).get("startTime"))
    return None if began is None else began + timedelta(seconds=_timeout(state))


def is_ended_by_kubelet(state: LifecycleState, pod: Pod) -> bool:
    """Whether the pod carries its deadline."""
    return state.job.features.active_deadline_seconds and "activeDeadlineSeconds" in pod["spec"]


def _timeout(state: LifecycleState) -> int:
    """The spec's, or what an older run was started with."""
    record, own = state.record, state.job.deadline_seconds
    if record is None or record.spec_hash == state.job.spec_hash:
        return own
    return record.kept_timeout or own


def start_deadline(state: LifecycleState) -> datetime:
    """When the pod has to have started."""
    return waiting_since(state) + timedelta(seconds=state.job.start_timeout)


def waiting_since(state: LifecycleState) -> datetime:
    """When the pod began to wait for the cluster: before that, an engine may have been away."""
    created = datetime.fromisoformat(state.pod["metadata"]["creationTimestamp"])
    return max(created, state.attempt.claimed_at or created)


def with_last_words(state: LifecycleState, outcome: Outcome, pod: Pod | None) -> Outcome:
    """With what the container that failed wrote last, unless a secret could be among it.

    The last line is the cause of an exit code, which says nothing by itself.
    """
    words = read_last_words(pod) if pod is not None else outcome.last_words
    if not state.observed.masks_secrets:
        words = ()
    message = outcome.message
    if words and outcome.reason in (Reason.SCRIPT_FAILED, Reason.CONTAINER_CONFIG_ERROR):
        message += f": {words[0].message.rstrip().splitlines()[-1].strip()}"
    return replace(outcome, message=message, last_words=words)


def close(state: LifecycleState, outcome: Outcome) -> WriteRecord:
    """Write down how the attempt ended; whether there is another is up to the job's `retry`."""
    record, attempt = state.decided_record, state.attempt
    pod = state.pod_of(attempt.uid)
    outcome = with_last_words(state, outcome, pod)
    if pod is not None and attempt.started_at is None:
        attempt = replace(attempt, started_at=started_at(pod))
    if outcome.reason is Reason.DEADLINE_EXCEEDED and pod is not None:
        longest = pod["spec"].get("activeDeadlineSeconds", math.inf)
        if longest < state.job.deadline_seconds:
            # A running pod can't be given a longer timeout: it failed by that of the record.
            record = state.run_record
    end = (finished_at(pod) if pod is not None else None) or state.now
    return WriteRecord(close_or_retry(record, state.job, attempt, outcome, end))
