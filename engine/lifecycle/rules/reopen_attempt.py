"""An attempt was given up, but its pod has started after all: it goes on, none takes its place.

The kubelet goes on pulling until the pod is deleted, and an engine may die before it does that.
That is so on every version of Kubernetes: the gate went before the first pull. Without this rule a
script that has begun would be cut off, and started again.
"""

from msgspec.structs import replace

from engine.lifecycle.actions import WriteRecord
from engine.lifecycle.record import Attempt
from engine.lifecycle.state import LifecycleState, is_terminating
from engine.status.containers import has_main_started
from engine.status.outcome import Reason, State

_GIVEN_UP = frozenset({Reason.IMAGE_PULL_FAILED, Reason.START_TIMEOUT})


def reopen_attempt(state: LifecycleState) -> WriteRecord | None:
    """Only of a run that goes on: an end that was reported is final."""
    record = state.run_record
    last = record.last
    if last is None or last.outcome not in _GIVEN_UP:
        return None
    pod = state.pod_of(last.uid)
    if pod is None or is_terminating(pod) or not has_main_started(pod):
        return None
    again = Attempt(last.number, last.pod, last.uid, last.policies, last.claimed_at)
    return WriteRecord(replace(record.with_attempt(again), state=State.STARTING, message=""))
