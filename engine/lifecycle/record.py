"""The run record: what the engine knows of a job, in a ConfigMap that outlives every pod.

`record_codec` says how it is written down: every field is a key there.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from functools import partial
from itertools import chain
from operator import attrgetter
from typing import Any, TypeVar

from engine.api.model import RUN_LENGTH, Job, PullClass
from engine.refs import JobKey
from engine.status.outcome import Outcome, Reason, State

Entry = TypeVar("Entry", "Record", "RunHistoryEntry", "Attempt", "PullFailure")

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
    policies: Mapping[str, str] = field(default_factory=dict)
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
    def deleted(self) -> Outcome:
        """Its pod was deleted; the message is kubectl's own for an object that isn't there."""
        return Outcome(Reason.POD_DELETED, f'pods "{self.pod}" not found')

    @property
    def pull_class(self) -> PullClass | None:
        """Class of its first pull failure, if there was one."""
        return self.failures[0].pull_class if self.failures else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What is known of a run, while it is the job's newest and later."""

    state: State = State.QUEUED
    """The state of the run; of an earlier one, the state it ended in or was left in."""
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
    unknown: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunHistoryEntry(Run):
    """A run that a newer one has replaced."""

    run: str
    """Short name of the run."""
    last_number: int = 0
    """Number of its last attempt."""
    uid: str = ""
    """UID of that attempt's pod, which may still be there."""


@dataclass(frozen=True, slots=True)
class Record(Run):
    """The job's newest run, and the ones before it."""

    key: JobKey
    """The job."""
    source: str
    """The source that it belongs to."""
    spec_hash: str
    """The revision of the spec that runs, or has run."""
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
        return frozenset(map(attrgetter("uid"), (*self.attempts, *self.history))) - {""}

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
        """Copy in which `attempt` takes the place of the newest one, or follows it."""
        is_new = self.last is None or self.last.number != attempt.number
        before = self.attempts if is_new else self.attempts[:-1]
        return replace(self, attempts=(*before, attempt))

    def with_attempt_closed(
        self,
        attempt: Attempt,
        outcome: Outcome,
        now: datetime,
        *,
        failures: tuple[PullFailure, ...] = (),
        again: bool = False,
    ) -> "Record":
        """Copy with `attempt` closed; the run ends with it unless there is to be another one."""
        done = replace(
            attempt,
            outcome=outcome.reason,
            message=outcome.message,
            exit_code=outcome.exit_code,
            finished_at=now,
            failures=failures,
        )
        started = self.started_at or attempt.started_at
        after = replace(self.with_attempt(done), started_at=started)
        if again:
            return replace(after, state=State.STARTING, message=outcome.message)
        return after.finished(outcome, now)

    def running(self, attempt: Attempt, since: datetime | None) -> "Record":
        """Copy of a run whose pod runs."""
        after = self.with_attempt(replace(attempt, started_at=since))
        return replace(after, state=State.RUNNING, started_at=since, message="")

    def finished(self, outcome: Outcome, at: datetime) -> "Record":
        """Copy in its final state."""
        return replace(
            self,
            state=outcome.reason.state,
            reason=outcome.reason,
            message=outcome.message,
            exit_code=outcome.exit_code,
            finished_at=at,
        )

    def cancelled(self, message: str, now: datetime) -> "Record":
        """Copy that ended as Cancelled; its pod, if it has one, is to be deleted afterwards."""
        outcome = Outcome(Reason.CANCELLED, message)
        attempt = self.open_attempt
        if attempt is None:
            return self.finished(outcome, now)
        return self.with_attempt_closed(attempt, outcome, now)

    def as_completed(
        self, spec_hash: str, spec_fields: str, message: str, now: datetime
    ) -> "Record":
        """A run of this revision that succeeded without an attempt, this one in its history."""
        is_blank = not self.state.is_final and not self.attempts
        is_same = is_blank and self.spec_hash == spec_hash
        run = self if is_same else self.next_run(spec_hash, spec_fields)
        return replace(run.finished(Outcome(Reason.SUCCEEDED, message), now), completed=True)

    def cursor(self, container: str) -> int:
        """How many pull policies `container` has used up in this run."""
        failures = chain.from_iterable(map(attrgetter("failures"), self.attempts))
        return sum(failure.container == container for failure in failures)

    def next_policies(self, job: Job) -> Mapping[str, str]:
        """Pull policy of every container with a list, for the attempt that comes next."""
        return {
            container: policies[min(self.cursor(container), len(policies) - 1)]
            for container, policies in job.policies.items()
        }

    def has_policy_left(self, job: Job, container: str, *, more: int = 0) -> bool:
        """Whether `container` has another policy after those that it used up, and `more`.

        A container without a list has one policy, the cluster's default.
        """
        return self.cursor(container) + more < len(job.policies.get(container, ("",)))

    def next_run(self, spec_hash: str, spec_fields: str = "") -> "Record":
        """Record of a new run of the same job, this one in its history."""
        used = self.next_number - (0 if self.open_attempt else 1)
        kept = {f.name: getattr(self, f.name) for f in fields(Run) if f.name != "unknown"}
        past = RunHistoryEntry(self.run, used, self.last.uid if self.last else "", **kept)
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

    def again(self) -> "Record":
        """Record of a new run of the same spec; its attempts go on counting."""
        return self.next_run(self.spec_hash, self.spec_fields)

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


def map_messages(entry: Entry, change: Callable[[str], str]) -> Entry:
    """`entry` with `change` applied to every message in it: containers say what they like."""
    parts: dict[str, Any] = {"message": change(entry.message)}
    for name in ("history", "attempts", "failures"):
        entries = getattr(entry, name, ())
        if entries:
            parts[name] = tuple(map(partial(map_messages, change=change), entries))
    return replace(entry, **parts)
