"""Nothing to do now: keep the record's state up to date, and say what is waited for."""

from datetime import datetime, timedelta

from engine.lifecycle.actions import Action, WriteRecord
from engine.lifecycle.rules.close_attempt import run_deadline, start_deadline
from engine.lifecycle.rules.restore_dependents import next_look
from engine.lifecycle.state import LifecycleState, Pod
from engine.status.containers import container_states, has_started, started_at
from engine.status.outcome import State
from engine.times import parse_time

RUNNING_DELAY = 2.0


def wait_for_pod(state: LifecycleState) -> Action:
    """Always answers.

    A job that has just started is not written down as running at once: most are done before
    anybody looks, and their outcome is the next write anyway.
    """
    record, pod = state.run_record, state.pod
    end = run_deadline(state, pod)
    if not has_started(pod):
        return state.wait(start_deadline(state), next_look(state), end)
    if record.state is State.RUNNING:
        return state.wait(end)
    begun = started_at(pod) or _init_started_at(pod) or state.now
    due = begun + timedelta(seconds=RUNNING_DELAY)
    if state.now < due:
        return state.wait(due, end)
    return WriteRecord(record.running(state.attempt, begun))


def _init_started_at(pod: Pod) -> datetime | None:
    """When the first init container that is no sidecar started, and with it the pod."""
    for state in container_states(pod):
        if state.is_init and not state.is_sidecar:
            return parse_time((state.running or state.terminated).get("startedAt"))
    return None
