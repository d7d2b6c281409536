"""A changed spec starts a new run, but only once the old run is over and its pod is gone.

`onChange: Wait` waits for what runs, by the timeout that it was started with, and for the time at
which a failed attempt would have been tried again. A pod that has not started, or whose main
container can't, has nothing to be waited for.
"""

from engine.api.model import OnChange
from engine.lifecycle.actions import Action, DeletePod, RefreshPod, Wait, WriteRecord
from engine.lifecycle.record import Attempt, Record
from engine.lifecycle.rules.close_attempt import see_through
from engine.lifecycle.state import LifecycleState, Pod, run_of
from engine.status.containers import has_main_started, has_started
from engine.status.outcome import Outcome, Reason
from engine.status.waiting import pull_errors, read_config_error, read_invalid_image


def replace_changed_run(state: LifecycleState) -> Action | None:
    """Only if something of another run is left."""
    record = state.record
    if record is None or record.spec_hash == state.job.spec_hash:
        return remove_strays(state)
    attempt = record.open_attempt
    if attempt is None:
        retry_at = record.last.retry_at if record.last and not record.state.is_final else None
        if state.job.on_change is OnChange.WAIT and retry_at is not None and state.now < retry_at:
            return state.wait(retry_at)
        return remove_strays(state)
    return _end_old_run(state, record, attempt)


def _end_old_run(state: LifecycleState, record: Record, attempt: Attempt) -> Action | None:
    step, pod = see_through(state, record), state.pod_of(attempt.uid)
    if pod is None or not isinstance(step, Wait):
        return step
    if state.job.on_change is OnChange.WAIT:
        if has_started(pod) and not _is_stuck(pod):
            return step
        if not state.is_fresh(attempt.uid):
            return RefreshPod(attempt.pod, attempt.uid)
    words = f"run {state.job.run} replaced it: {state.run_record.cause}"
    replaced = Outcome(Reason.SUPERSEDED, words)
    return WriteRecord(record.with_attempt_closed(attempt, replaced, state.now))


def _is_stuck(pod: Pod) -> bool:
    """Whether an init container has run and the main one can't begin: nothing ends that."""
    if has_main_started(pod):
        return False
    wrong = read_invalid_image(pod) or read_config_error(pod)
    return wrong is not None or any(pull_errors(pod))


def remove_strays(state: LifecycleState) -> DeletePod | RefreshPod | Wait | None:
    """Unfinished pods of other runs go before anything of this run begins."""
    strays = (pod for pod in state.other_pods("") if run_of(pod) != state.job.run)
    return next((state.delete(pod, "its spec has changed") for pod in strays), None)
