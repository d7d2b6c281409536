"""An attempt whose pod is stuck is given up: it would not start, or not end, by itself."""

from engine.lifecycle.actions import Action, RefreshPod, Wait
from engine.lifecycle.pull_fallback import fall_back
from engine.lifecycle.rules.close_attempt import close, read_overdue, run_deadline, start_deadline
from engine.lifecycle.rules.restore_dependents import next_look
from engine.lifecycle.state import LifecycleState
from engine.status.containers import has_main_started, has_started
from engine.status.outcome import Outcome, Reason
from engine.status.waiting import (
    lacks_dependents,
    read_config_error,
    read_invalid_image,
    read_start_cause,
)


def close_stuck(state: LifecycleState) -> Action | None:
    """The ways to be stuck, each believed after one more look at the API.

    Once main has started, its timeout is the only one: what its services lack is only reported.
    """
    attempt, pod = state.attempt, state.pod
    outcome = read_overdue(state, pod)
    if outcome is None and has_main_started(pod):
        return None
    outcome = outcome or read_invalid_image(pod)
    latest = None if has_started(pod) else start_deadline(state)
    if outcome is None:
        action = fall_back(state, latest)
        if isinstance(action, Wait):
            return state.wait(action.until, run_deadline(state, pod))
        if action is not None:
            return action
        is_mended = lacks_dependents(pod) and state.now < (next_look(state) or state.now)
        outcome = None if is_mended else read_config_error(pod)
    if outcome is None and latest is not None and state.now >= latest:
        words = f"not started within {state.job.start_timeout:g}s: {read_start_cause(pod)}"
        outcome = Outcome(Reason.START_TIMEOUT, words)
    if outcome is None:
        return None
    fresh = state.is_fresh(attempt.uid)
    return close(state, outcome) if fresh else RefreshPod(attempt.pod, attempt.uid)
