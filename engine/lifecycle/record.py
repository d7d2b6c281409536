"""The run record: what the engine knows of a job, in an object that outlives every pod.

`record_codec` says how it is written down: every field is a key there.
"""

from collections.abc import Callable, Mapping
from datetime import datetime

from msgspec import Struct, field
from msgspec.structs import replace

from engine.api.field_kinds import FieldKind
from engine.api.model import RUN_LENGTH, Job, JobObject, PullClass
from engine.api.spec_hash import changed_fields
from engine.durations import format_age
from engine.refs import JobKey, pod_name
from engine.status.outcome import LastWords, Masked, Outcome, Reason, State
from engine.values import Text, map_text

MOST_RUNS = 100
MOST_NUMBERS = 1000
OTHER_RUNS = "*"
Since = Mapping[tuple[str, str], str]
"""Of each condition of a JobSpec object, by type and status, the time of its last change."""
FIRST_RUN, RERUN = "first run", "rerun asked for"
"""Causes of a start."""


class PullFailure(Struct, frozen=True, rename="camel"):
    """One container's image could not be pulled."""

    container: str
    """The container's name."""
    reason: str
    """The kubelet's reason, such as ErrImagePull."""
    pull_class: PullClass = field(name="class")
    """The kind of failure, by the message."""
    message: Text
    """The first real message, the registry's own words; "" for a container that moves on with
    another one, of the same image and policy, which has them.
    """
    image: str
    """The image, as the pod's status names it."""


class Attempt(Struct, frozen=True, rename="camel", omit_defaults=True):
    """One pod of a run."""

    number: int
    """Counts from 1 over all runs of the same spec, as the pod's name does."""
    pod: str
    """The pod's name."""
    uid: str = ""
    """The pod's UID; "" where the pod was refused."""
    policies: Mapping[str, str] = field(default_factory=dict, name="pullPolicies")
    """Pull policy of each container that has a list of them."""
    claimed_at: datetime | None = None
    """Until then the pod waited for the engine, from then on for the cluster."""
    started_at: datetime | None = None
    """When its main container started."""
    finished_at: datetime | None = None
    """When it ended."""
    outcome: Reason | None = None
    """How it ended; None while it is under way."""
    message: Text = ""
    """The first real cause."""
    exit_code: int | None = None
    """The main container's exit code, if it had one."""
    failures: tuple[PullFailure, ...] = ()
    """The pulls that failed."""
    gives_up_at: datetime | None = None
    """Until then its containers may wait for a registry that doesn't answer."""
    retry_at: datetime | None = None
    """When the attempt after it may start; None for at once, or for none."""
    exhausted: bool = False
    """Whether no pull policy was left, and a retry begins with the first ones again."""
    last_words: tuple[LastWords, ...] = ()
    """What the container that failed wrote last."""

    @property
    def is_open(self) -> bool:
        """Whether the attempt is under way."""
        return self.outcome is None

    @property
    def pull_class(self) -> PullClass | None:
        """Class of its first pull failure, if there was one."""
        return self.failures[0].pull_class if self.failures else None


class Run(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What is known of a run, while it is the job's newest and later."""

    state: State = field(default_factory=lambda: State.QUEUED)  # is written always
    """The state of the run; of an earlier one, the state it ended in or was left in."""
    reason: Reason | None = None
    """Why it ended; None until then."""
    message: Text = ""
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
    cause: str = ""
    """Why it began."""
    defaulted_fields: str = ""
    """What its last attempt had from defaults: a digest of each such field that says what runs."""

    def position(self, attempt: Attempt) -> int:
        """Which of the run's attempts it is, as people count them: from 1 in every run."""
        return attempt.number - self.attempts[0].number + 1

    def explain_end(self, now: datetime) -> str:
        """How a run ended that did not succeed, and how long ago."""
        verb, at = "was cancelled" if self.state is State.CANCELLED else "failed", self.finished_at
        ago = f" {format_age((now - at).total_seconds())} ago" if at else ""
        why = f"exit code {self.exit_code}" if self.exit_code is not None else self.reason
        return f"{verb}{ago}{f' ({why})' if verb == 'failed' else ''}"


class RunHistoryEntry(Run, frozen=True):
    """A run that a newer one has replaced."""

    run: str
    """Short name of the run."""
    last_number: int = 0
    """Number of its last attempt."""
    uid: str = ""
    """UID of that attempt's pod, which may still be there."""


class Record(Run, frozen=True):
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
    """The highest number of earlier runs of the very same spec, or of a pod that was given up. A
    number, and with it a pod's name, is never given twice, not even to a spec that was changed and
    changed back.
    """
    numbers: Mapping[str, int] = {}
    """The highest number that each run had which the history has forgotten; OTHER_RUNS has the
    highest of those that are forgotten here, too.
    """
    spec_fields: str = ""
    """A digest of each field of that revision, which say where another one differs."""
    discarded: str = ""
    """UID of a gated pod in no record, which is deleted. By this write the engine that made the
    pod, and is about to record it, finds that it is too late.
    """
    engine: str = ""
    """The process that began its newest attempt."""
    fence: int = 0
    """No pod of the job was given a higher fence."""
    kept_timeout: int = 0
    """Seconds that its newest attempt may run, where no kubelet ends it."""
    completed: bool = False
    """Whether it was recorded as over without an attempt: by `engine complete`, or as moved."""
    refused: str = ""
    """What the server refused it for, while it is Queued for that."""
    annotations: Mapping[str, str] = {}
    """Of its ConfigMap: since when its spec is gone, and what others wrote there."""
    object: JobObject | None = None
    """The JobSpec object whose status it is; None for a ConfigMap."""
    since: Since = {}
    """Of that status's conditions."""
    version: str = ""
    """resourceVersion that it was read at; "" if it never was."""

    @property
    def source_words(self) -> str:
        """Its source, and whether the job is an object there."""
        return f"{self.source} (JobSpec object)" if self.object is not None else self.source

    def is_of(self, job: Job) -> bool:
        """Whether `job` has no run to begin: what runs is the same, what failed would be tried in
        the same way again, and no other revision has ended it.
        """
        is_same = self.spec_hash == job.spec_hash and self.reason is not Reason.SUPERSEDED
        return is_same and not self.tried_anew(job)

    def tried_anew(self, job: Job) -> tuple[str, ...]:
        """The fields that say how a job is tried, and have changed since this run of it failed."""
        if self.state is not State.FAILED or self.spec_hash != job.spec_hash:
            return ()
        return self.changed_fields(job, FieldKind.TRIED)

    def changed_fields(self, job: Job, kind: FieldKind = FieldKind.RUNS) -> tuple[str, ...]:
        """The fields of this kind in which `job` differs, as far as the record says."""
        known = self.spec_fields
        return changed_fields(known, job.spec_fields, kind) if known else ()

    @property
    def next_number(self) -> int:
        """Number of the attempt that is under way, or else of the next one."""
        if self.open_attempt is not None:
            return self.open_attempt.number
        return max(self.last.number if self.last else 0, self.base) + 1

    @property
    def pods(self) -> Mapping[str, str]:
        """Names of its pods, and of those of the runs before, by UID."""
        job = self.key.name
        named = {past.uid: pod_name(job, past.run, past.last_number) for past in self.history}
        for run in (*self.history, self):
            named |= {attempt.uid: attempt.pod for attempt in run.attempts}
        named.pop("", None)
        return named

    def next_fence(self, now: datetime) -> int:
        """Grows from call to call, also where a record was lost and made anew: it counts no faster
        than seconds pass.
        """
        return max(self.fence + 1, int(now.timestamp()))

    def has_begun_since(self, before: "Record") -> bool:
        """Whether a run, or another attempt, has begun since the record was `before`."""
        last, known = self.last, before.last
        is_new = last is not None and (known is None or last.uid != known.uid)
        reopened = before.state.is_final and not self.state.is_final
        return is_new or reopened or self.spec_hash != before.spec_hash

    @property
    def run(self) -> str:
        """Short name of the run, part of every object's name."""
        return self.spec_hash[:RUN_LENGTH]

    @property
    def last(self) -> Attempt | None:
        """The newest attempt, if there was one."""
        return self.attempts[-1] if self.attempts else None

    @property
    def start_cause(self) -> str:
        """Why its newest attempt starts."""
        before = self.attempts[-2:-1]
        return f"after {before[0].outcome}" if before else self.cause

    @property
    def open_attempt(self) -> Attempt | None:
        """The attempt that is under way, if there is one."""
        return self.last if self.last is not None and self.last.is_open else None

    def with_discarded(self, uid: str, run: str, number: int) -> "Record":
        """Copy that gives up a pod which never ran. Its number is given to no other pod, if an
        engine may have given it: a stranger's could leave none to give.
        """
        counts = run == self.run and number <= self.next_number + MOST_NUMBERS
        return replace(self, discarded=uid, base=max(self.base, number) if counts else self.base)

    def with_attempt(self, attempt: Attempt) -> "Record":
        """Copy in which `attempt` takes the place of the newest one, or follows it."""
        is_new = self.last is None or self.last.number != attempt.number
        before = self.attempts if is_new else self.attempts[:-1]
        return replace(self, attempts=(*before, attempt))

    def with_attempt_closed(
        self, attempt: Attempt, outcome: Outcome, now: datetime, *, again: bool = False
    ) -> "Record":
        """Copy with `attempt` closed; the run ends with it unless there is to be another one."""
        done = replace(
            attempt,
            outcome=outcome.reason,
            message=outcome.message,
            exit_code=outcome.exit_code,
            last_words=outcome.last_words,
            finished_at=now,
            gives_up_at=None,
        )
        started = self.started_at or attempt.started_at
        after = replace(self.with_attempt(done), started_at=started)
        if again:
            return replace(after, state=State.STARTING, message=outcome.message)
        return after.finished(outcome, now)

    def running(self, attempt: Attempt, since: datetime | None) -> "Record":
        """Copy of a run whose pod runs."""
        after = self.with_attempt(replace(attempt, started_at=since, gives_up_at=None))
        return replace(after, state=State.RUNNING, started_at=since, message="")

    def queued(
        self,
        words: str,
        since: datetime | None = None,
        reason: Reason | None = None,
        refused: str = "",
    ) -> "Record":
        """Copy of a run that waits; `since` when, where it has a place in a line."""
        return replace(
            self,
            state=State.QUEUED,
            reason=reason,
            message=words,
            refused=refused,
            queued_at=since,
            finished_at=None,
        )

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
        """Copy that ended as Cancelled; its pod, if it has one, is to be deleted afterwards.

        A rerun that has not begun is taken back: its record is that of the run before again.
        """
        outcome = Outcome(Reason.CANCELLED, message)
        attempt = self.open_attempt
        if attempt is None:
            return self._without_rerun() or self.finished(outcome, now)
        return self.with_attempt_closed(attempt, outcome, now)

    def _without_rerun(self) -> "Record | None":
        past = self.history[0] if self.history else None
        if self.attempts or past is None or past.run != self.run or not past.attempts:
            return None
        kept = {name: getattr(past, name) for name in Run.__struct_fields__}
        return replace(self, history=self.history[1:], **kept) if past.state.is_final else None

    @property
    def owned_by_name(self) -> str:
        """By what the engines of a source share the job: those that wait for a quota, by namespace.

        So there is one line for each namespace that has one.
        """
        return self.key.namespace if self.refused else str(self.key)

    def as_completed(
        self, spec_hash: str, spec_fields: str, message: str, now: datetime
    ) -> "Record":
        """A run of this revision that succeeded without an attempt, this one in its history."""
        is_blank = not self.state.is_final and not self.attempts
        is_same = is_blank and self.spec_hash == spec_hash
        run = self if is_same else self.next_run(spec_hash, spec_fields)
        return replace(run.finished(Outcome(Reason.SUCCEEDED, message), now), completed=True)

    def moved(self, before: tuple[str, str], after: tuple[str, str]) -> "Record":
        """A run that is over, of a spec whose hash and digests are others `after` it has moved.

        Pods are called by the hash: the run goes into the history. What is no run of that very spec
        stays as it is, and the spec is a changed one.
        """
        differs = set(before[1].split()) ^ set(after[1].split())
        is_same = all(digest.startswith("metadata.namespace=") for digest in differs)
        if self.spec_hash != before[0] or before[0] == after[0] or not is_same:
            return self
        kept = {n: getattr(self, n) for n in Run.__struct_fields__ if n != "attempts"}
        return replace(self.next_run(*after), **kept, completed=True)

    def cursor(self, container: str) -> int:
        """How many pull policies `container` has used up, since it last began with the first."""
        count = 0
        for attempt in self.attempts:
            failed = sum(failure.container == container for failure in attempt.failures)
            count = 0 if attempt.exhausted else count + failed
        return count

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

    def run_of(self, job: Job) -> "Record":
        """Record of the run that `job` is to have: this one, or a new one."""
        if self.spec_hash != job.spec_hash:
            fields = self.changed_fields(job)
            cause = f"{', '.join(fields) or 'spec'} changed"
            if fields == ("spec.rerun",):
                cause = RERUN
        elif fields := self.tried_anew(job):
            cause = f"failed before, {', '.join(fields)} changed"
        elif self.reason is Reason.SUPERSEDED:
            cause = "superseded before"
        else:
            return self
        return self.next_run(job.spec_hash, job.spec_fields, cause)

    def next_run(self, spec_hash: str, spec_fields: str = "", cause: str = "") -> "Record":
        """Record of a new run of the same job, this one in its history."""
        used = self.next_number - (0 if self.open_attempt else 1)
        kept = {name: getattr(self, name) for name in Run.__struct_fields__}
        past = RunHistoryEntry(self.run, used, self.last.uid if self.last else "", **kept)
        record = Record(
            self.key,
            self.source,
            spec_hash,
            history=(past, *self.history),
            numbers=self.numbers,
            spec_fields=spec_fields,
            cause=cause,
            annotations=self.annotations,
            fence=self.fence,
            object=self.object,
            since=self.since,
            version=self.version,
        ).with_history(MOST_RUNS)
        return replace(record, base=record.highest_number(spec_hash[:RUN_LENGTH]))

    def again(self, cause: str = RERUN) -> "Record":
        """Record of a new run of the same spec; its attempts go on counting."""
        return self.next_run(self.spec_hash, self.spec_fields, cause)

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


class MaskedRecord(Struct, frozen=True):
    """A record with no message that wasn't masked: only such a one is written."""

    record: Record


def mask_record(record: Record, mask: Callable[[str], Masked]) -> MaskedRecord:
    """`record` with every message masked that isn't yet."""
    return MaskedRecord(map_text(record, mask))
