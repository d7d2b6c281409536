"""Where a job stands now: by its record and, where that is behind, by its pod.

An engine writes down what it sees a moment later, and nothing at all while none runs.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from engine.decide.record import Record
from engine.decide.situation import Pod, gate_position, held_by, uid_of
from engine.decide.transitions import deleted_pod, running
from engine.status.containers import has_started, started_at
from engine.status.deletion import read_end
from engine.status.outcome import Reason, State
from engine.status.start import read_start_cause


@dataclass(frozen=True, slots=True)
class Standing:
    """State, reason and message as a record has them."""

    state: State
    reason: Reason | None
    message: str
    is_recorded: bool = True
    """False where the pod has ended, or is gone, and the record doesn't say so."""

    @property
    def may_be_retried(self) -> bool:
        """Whether another attempt may follow: the spec says so, which no record holds."""
        return not self.is_recorded and self.state is State.FAILED


def read_standing(record: Record, pod: Pod | None) -> Standing:
    """`pod` is the one of the attempt that is under way; None if it is gone."""
    recorded = recorded_standing(record)
    attempt = record.open_attempt
    if record.state.is_final or attempt is None or not attempt.uid:
        return recorded
    end = deleted_pod(attempt) if pod is None else read_end(pod)
    if end is not None:
        return Standing(end.reason.state, end.reason, end.message, is_recorded=False)
    if pod is not None and has_started(pod):
        return Standing(State.RUNNING, None, "")
    if pod is not None:
        state = State.QUEUED if held_by(pod) else State.STARTING
        return Standing(state, None, read_wait(pod))
    return recorded


def as_observed(record: Record, pods: Iterable[Pod]) -> Record:
    """`record`, which says that its run runs as soon as its pod does: that is written later."""
    attempt = record.open_attempt
    pod = next((p for p in pods if attempt is not None and uid_of(p) == attempt.uid), None)
    if attempt is None or pod is None or record.state is State.RUNNING:
        return record
    if read_standing(record, pod).state is not State.RUNNING:
        return record
    return running(record, attempt, started_at(pod) or record.started_at)


def recorded_standing(record: Record) -> Standing:
    """What the record alone says."""
    return Standing(record.state, record.reason, record.message)


def read_wait(pod: Pod) -> str:
    """What a pod that hasn't started waits for."""
    if gate_position(pod) is not None:
        return "the engine has not opened its scheduling gate yet"
    return held_by(pod) or read_start_cause(pod)
