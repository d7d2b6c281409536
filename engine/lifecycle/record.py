"""The run record: what the engine knows of a job, in a ConfigMap that outlives every pod.

`record_codec` says how it is written down.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from engine.api.model import RUN_LENGTH, PullClass
from engine.refs import JobKey
from engine.status.outcome import Outcome, Reason, State

MOST_RUNS = 100
MOST_NUMBERS = 1000
OTHER_RUNS = "*"


@dataclass(frozen=True, slots=True)
class PullFailure:
    """One container's image could not be pulled."""

    container: str
    """The container's name."""
    reason: str
    """The kubelet's reason, such as ErrImagePull."""
    pull_class: PullClass
    """The kind of failure, by the message."""
    message: str
    """The first real message, the registry's own words; "" for a container that moves on with
    another one, of the same image and policy, which has them.
    """
    image: str
    """The image, as the pod's status names it."""
    unknown: Mapping[str, Any] = field(default_factory=dict)
    """Keys that a later version wrote; so everywhere below."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One pod of a run."""

    number: int
    """Counts from 1 over all runs of the same spec."""
    pod: str
    """The pod's name."""
    uid: str = ""
    """The pod's UID; "" where the pod was refused."""
    policies: Mapping[str, str] | None = None
    """Pull policy of each container that has a list of them."""
    claimed_at: datetime | None = None
    """Until then the pod waited for the engine, from then on for the cluster."""
    started_at: datetime | None = None
    """When its main container started."""
    finished_at: datetime | None = None
    """When it ended."""
    outcome: Reason | None = None
    """How it ended; None while it is under way."""
    message: str = ""
    """The first real cause."""
    exit_code: int | None = None
    """The main container's exit code, if it had one."""
    failures: tuple[PullFailure, ...] = ()
    """The pulls that failed."""
    unknown: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_open(self) -> bool:
        """Whether the attempt is under way."""
        return self.outcome is None

    @property
    def pull_class(self) -> PullClass | None:
        """Class of its first pull failure, if there was one."""
        return self.failures[0].pull_class if self.failures else None


@dataclass(frozen=True, slots=True)
class RunHistoryEntry:
    """A run that a newer one has replaced."""

    run: str
    """Short name of the run."""
    state: State
    """The state it ended in, or was left in."""
    reason: Reason | None
    """Why it ended."""
    message: str
    """The first real cause."""
    finished_at: datetime | None
    """When it ended."""
    last_number: int = 0
    """Number of its last attempt."""
    uid: str = ""
    """UID of that attempt's pod, which may still be there."""
    exit_code: int | None = None
    """The main container's exit code, if it had one."""
    queued_at: datetime | None = None
    """When it was queued."""
    started_at: datetime | None = None
    """When its first attempt started."""
    attempts: tuple[Attempt, ...] = ()
    """Its attempts, oldest first."""
    unknown: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Record:
    """State of one run of a job."""

    key: JobKey
    """The job."""
    source: str
    """The source that it belongs to."""
    spec_hash: str
    """The revision of the spec that runs, or has run."""
    state: State = State.QUEUED
    """The state of the run."""
    reason: Reason | None = None
    """Why it ended; None until then."""
    message: str = ""
    """The first real cause of the state."""
    exit_code: int | None = None
    """The main container's exit code, once the run is over."""
    attempts: tuple[Attempt, ...] = ()
    """The run's attempts, oldest first."""
    queued_at: datetime | None = None
    """Since when it waits for a quota."""
    started_at: datetime | None = None
    """When its first attempt started."""
    finished_at: datetime | None = None
    """When it was over."""
    history: tuple[RunHistoryEntry, ...] = ()
    """Runs before this one, newest first."""
    base: int = 0
    """Attempts of earlier runs of the very same spec. A number, and with it a pod's name, is never
    given twice, not even to a spec that was changed and changed back.
    """
    numbers: Mapping[str, int] = field(default_factory=dict)
    """The highest number that each run had which the history has forgotten; OTHER_RUNS has the
    highest of those that are forgotten here, too.
    """
    spec_fields: str = ""
    """A digest of each field of that revision, which say where another one differs."""
    discarded: str = ""
    """UID of a gated pod in no record, which is deleted. By this write the engine that made the
    pod, and is about to record it, finds that it is too late.
    """
    unknown: Mapping[str, Any] = field(default_factory=dict)
    completed: bool = False
    """Whether `engine complete` recorded it as done: it succeeded without an attempt."""
    annotations: Mapping[str, str] = field(default_factory=dict)
    """Of its ConfigMap: since when its spec is gone, and what others wrote there."""
    version: str = ""
    """resourceVersion that it was read at; "" if it never was."""

    @property
    def next_number(self) -> int:
        """Number of the attempt that is under way, or else of the next one."""
        if self.open_attempt is not None:
            return self.open_attempt.number
        return self.last.number + 1 if self.last else self.base + 1

    @property
    def pod_uids(self) -> frozenset[str]:
        """UIDs of its pods, and of the last one of each run before."""
        uids = {attempt.uid for attempt in self.attempts} | {run.uid for run in self.history}
        return frozenset(uids - {""})

    @property
    def run(self) -> str:
        """Short name of the run, part of every object's name."""
        return self.spec_hash[:RUN_LENGTH]

    @property
    def last(self) -> Attempt | None:
        """The newest attempt, if there was one."""
        return self.attempts[-1] if self.attempts else None

    @property
    def open_attempt(self) -> Attempt | None:
        """The attempt that is under way, if there is one."""
        return self.last if self.last is not None and self.last.is_open else None

    def with_attempt(self, attempt: Attempt) -> "Record":
        """Copy in which `attempt` takes the place of the one with its number, or comes last."""
        others = tuple(a for a in self.attempts if a.number != attempt.number)
        return replace(self, attempts=(*others, attempt))

    def next_run(self, spec_hash: str, spec_fields: str = "") -> "Record":
        """Record of a new run of the same job, this one in its history."""
        used = self.next_number - (0 if self.open_attempt else 1)
        past = RunHistoryEntry(
            self.run,
            self.state,
            self.reason,
            self.message,
            self.finished_at,
            used,
            self.last.uid if self.last else "",
            self.exit_code,
            self.queued_at,
            self.started_at,
            self.attempts,
        )
        record = Record(
            self.key,
            self.source,
            spec_hash,
            history=(past, *self.history),
            numbers=self.numbers,
            spec_fields=spec_fields,
            unknown=self.unknown,
            annotations=self.annotations,
            version=self.version,
        ).with_history(MOST_RUNS)
        return replace(record, base=record.highest_number(spec_hash[:RUN_LENGTH]))

    def with_history(self, count: int) -> "Record":
        """Copy with so many past runs; of the others the highest number is kept."""
        if len(self.history) <= count:
            return self
        numbers = dict(self.numbers)
        for past in reversed(self.history[count:]):
            numbers[past.run] = max(past.last_number, numbers.pop(past.run, 0))
        while len(numbers) > MOST_NUMBERS:
            oldest = next(run for run in numbers if run != OTHER_RUNS)
            numbers[OTHER_RUNS] = max(numbers.pop(oldest), numbers.pop(OTHER_RUNS, 0))
        return replace(self, history=self.history[:count], numbers=numbers)

    def highest_number(self, run: str) -> int:
        """Of the attempts that a past run of this name had; 0 if there was none."""
        forgotten = self.numbers.get(run, self.numbers.get(OTHER_RUNS, 0))
        return max(forgotten, *(past.last_number for past in self.history if past.run == run), 0)


def map_messages(record: Record, change: Callable[[str], str]) -> Record:
    """`record` with `change` applied to every message: containers say what they like."""
    past_runs = (
        replace(run, message=change(run.message), attempts=_map_attempts(run.attempts, change))
        for run in record.history
    )
    return replace(
        record,
        message=change(record.message),
        attempts=_map_attempts(record.attempts, change),
        history=tuple(past_runs),
    )


def _map_attempts(
    attempts: tuple[Attempt, ...], change: Callable[[str], str]
) -> tuple[Attempt, ...]:
    return tuple(
        replace(
            attempt,
            message=change(attempt.message),
            failures=tuple(replace(f, message=change(f.message)) for f in attempt.failures),
        )
        for attempt in attempts
    )


def finished(record: Record, outcome: Outcome, at: datetime) -> Record:
    """`record` in its final state."""
    return replace(
        record,
        state=outcome.reason.state,
        reason=outcome.reason,
        message=outcome.message,
        exit_code=outcome.exit_code,
        finished_at=at,
    )
