"""The status of a job by its record and, where that is behind, by its pod.

An engine records a change a moment later, and nothing at all while none runs.
"""

from collections.abc import Iterable

from msgspec import Struct

from engine.lifecycle.record import Record
from engine.lifecycle.state import Pod, gate_position, held_by, held_end, uid_of
from engine.status.containers import has_started, started_at
from engine.status.deletion import deleted, read_end
from engine.status.outcome import Reason, State
from engine.status.waiting import pull_errors_beside_main, read_start_cause


class ObservedStatus(Struct, frozen=True):
    """State, reason and message as a record has them."""

    state: State
    reason: Reason | None
    message: str
    is_recorded: bool = True
    """False where the pod has ended, or is gone, and the record doesn't say so."""


def recorded_status(record: Record) -> ObservedStatus:
    return ObservedStatus(record.state, record.reason, record.message)


def observed_status(record: Record, pod: Pod | None) -> ObservedStatus:
    """`pod` is the one of the attempt that is under way; None if it is gone."""
    attempt = record.open_attempt
    if record.state.is_final or attempt is None or not attempt.uid:
        return recorded_status(record)
    end = deleted(attempt.pod) if pod is None else read_end(pod) or held_end(pod)
    if end is not None:
        return ObservedStatus(end.reason.state, end.reason, end.message, is_recorded=False)
    if pod is None:
        return recorded_status(record)
    waits = record.message if attempt.gives_up_at else ""
    if has_started(pod):
        lacking = (
            f"container {one.name} can't be started again: {one.message}"
            for one in pull_errors_beside_main(pod)
        )
        return ObservedStatus(State.RUNNING, None, waits or "; ".join(lacking))
    state = State.QUEUED if held_by(pod) else State.STARTING
    return ObservedStatus(state, None, waits or read_wait(pod))


def as_observed(record: Record, pods: Iterable[Pod]) -> Record:
    """`record` with its run running as soon as its pod does: an engine records that later."""
    attempt = record.open_attempt
    pod = next((p for p in pods if attempt is not None and uid_of(p) == attempt.uid), None)
    if attempt is None or pod is None or record.state is State.RUNNING:
        return record
    if observed_status(record, pod).state is not State.RUNNING:
        return record
    return record.running(attempt, started_at(pod) or record.started_at)


def read_wait(pod: Pod) -> str:
    """The cause for which a pod has not started."""
    if gate_position(pod) is not None:
        return "the engine has not opened its scheduling gate yet"
    return held_by(pod) or read_start_cause(pod)
