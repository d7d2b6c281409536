"""The jobs that are desired, and what the engine keeps in memory of each.

All of it can be found out again.
"""

import threading
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from msgspec import Struct, field

from engine.api.dependencies import Needs, needs_of
from engine.api.field_kinds import FieldKind
from engine.api.model import Job
from engine.errors import InvalidInputError
from engine.lifecycle.attempt import RenderConfig, has_to_be_rendered, try_render_attempt
from engine.lifecycle.record import Record
from engine.lifecycle.rules.update_pod import pod_update
from engine.lifecycle.state import Observation, gate_position, has_ended, uid_of
from engine.refs import JobKey
from engine.render.manifests import Manifests, SecretValues
from engine.render.secret_values import no_room, resolve_secrets, texts_to_mask
from engine.status.outcome import Reason
from engine.telemetry.redact import Redactor
from engine.wellknown import ORPHANED_SINCE

_MOST_SKEW = timedelta(seconds=4)
"""Between two engines, whose clocks agree with the server's within two seconds each."""
Pods = Iterable[dict[str, Any]]


class Rendered(Struct):
    """What was resolved and rendered for the next attempt."""

    config: RenderConfig | None = None
    """What it was made under; None as long as nothing was prepared."""
    secrets: SecretValues = field(default_factory=SecretValues)
    secrets_resolved: bool = True
    """False while a value is missing."""
    attempt: tuple[int, Mapping[str, str]] | None = None
    """Number and pull policies of the attempt whose manifests are kept."""
    manifests: Manifests | None = None


class TrackedJob(Struct):
    """One job in this process; used by one reconcile at a time."""

    job: Job
    record: Record | None = None
    unrecorded: Record | None = None
    """What the record would say, where not even that can be kept in the cluster."""
    writes: int = 0
    """How many requests to change anything were sent."""
    conflicts: int = 0
    """How many of this reconcile's met what had changed meanwhile."""
    failures: int = 0
    """How many reconciles in a row raised."""
    failing_since: float = 0.0
    """When the first of them did."""
    queued_since: float = 0.0
    """When this process first saw the job refused; 0 while it isn't."""
    observed: Observation = field(default_factory=Observation)
    rendered: Rendered = field(default_factory=Rendered)
    reported_state: tuple[object, ...] = ()
    """The last change of state that was reported."""
    reported_error: str = ""
    """The last error that was reported, for as long as it stays the same."""
    reported_pods: frozenset[str] = frozenset()
    """Pods that are left alone, changed, or lack a service: their UIDs, once that was reported."""
    reported_end: object = None
    """The outcome for which the jobs that wait for it were called last."""
    knows_references: bool = False
    """Whether the values of others' Secrets, to which its pod refers, are masked."""
    unchanged: bool = False
    """Whether the run was found to be over before."""
    read_at: datetime | None = None
    """When this revision of the spec was first reconciled."""
    has_run: bool = False
    """Whether the record has shown a run of this revision since then."""

    def check_superseded(self, now: datetime) -> bool:
        """Whether the record shows a run of another revision, which was asked for later."""
        record, job = self.record, self.job
        self.read_at = self.read_at or now
        if record is None:
            return False
        is_same = record.spec_hash == job.spec_hash and record.reason is not Reason.SUPERSEDED
        if is_same and not record.changed_fields(job, FieldKind.TRIED):
            self.has_run = True
        since = record.queued_at
        return not record.is_of(job) and (
            self.has_run or (since is not None and since > self.read_at + _MOST_SKEW)
        )

    def replace_job(self, job: Job) -> None:
        """Take over another revision of the spec, or the same with other defaults."""
        if (job.spec_hash, job.spec_fields) != (self.job.spec_hash, self.job.spec_fields):
            self.read_at, self.has_run = None, False
        self.job = job
        self.rendered = Rendered()
        self.observed.rejection, self.observed.rejections = None, 0
        self.observed.given_up.clear()
        self.unrecorded, self.failures, self.reported_error = None, 0, ""

    def prepare(
        self, config: RenderConfig, environment: Mapping[str, str], redactor: Redactor, pods: Pods
    ) -> None:
        """Resolve the job's secrets, and render the next attempt where that may be broken, once.

        A job whose attempt is under way needs neither: what it misses is a problem only if it is
        tried again. Errors: InvalidInputError with what keeps the next attempt from starting.
        """
        if self.rendered.config is config:
            return
        self.rendered = Rendered()
        if self.is_finished(config.source):
            return
        job, record = self.job, self.record
        secrets, problems = resolve_secrets(job, environment, config.limits)
        most = config.limits.max_source_bytes
        if not redactor.add(texts_to_mask(job, secrets), job.key, most=most):
            secrets, problems = SecretValues(), (no_room(job),)
        self.rendered = Rendered(config, secrets, secrets_resolved=not problems)
        if self.is_started(pods):
            return
        if not problems and has_to_be_rendered(config, job):
            # What will be sent first, so that a broken template is found before any write.
            run = record.run_of(job) if record is not None else Record(job.key, "", job.spec_hash)
            number, policies = run.next_number, run.next_policies(job)
            made, problems = try_render_attempt(config, job, number, policies, secrets)
            self.rendered.attempt, self.rendered.manifests = (number, policies), made
        if problems:
            raise InvalidInputError(problems)

    def is_finished(self, source: str) -> bool:
        """Whether the run of this very spec has its outcome."""
        record = self.record
        return (
            record is not None
            and record.source == source
            and record.is_of(self.job)
            and record.state.is_final
            # A job that it waits for may have a run to come.
            and record.reason is not Reason.DEPENDENCY_FAILED
        )

    def is_started(self, pods: Pods) -> bool:
        """Whether nothing of this attempt is still to be created, so that no secret is needed."""
        record = self.record
        if record is None or record.spec_hash != self.job.spec_hash or record.open_attempt is None:
            return False
        return all(gate_position(pod) is None for pod in pods)

    def has_begun(self, pods: Pods) -> bool:
        """Whether a pod was made for a run that isn't over; what runs may be a stranger's."""
        known = frozenset(self.observed.created)
        known |= self.record.pods.keys() if self.record is not None else set()
        return any(
            self.record is None or gate_position(pod) is not None or uid_of(pod) in known
            for pod in pods
            if not has_ended(pod)
        )

    def needs_cleanup(self, pods: Pods) -> bool:
        """Whether anything is left to do about a run that is over: its pods, or its record."""
        record = self.record
        return record is not None and (
            ORPHANED_SINCE in record.annotations
            or (self.job.object is not None and record.object != self.job.object)
            or any(
                not has_ended(pod) or pod_update(self.job, record, pod) is not None for pod in pods
            )
        )


class Changes(NamedTuple):
    """What another reading of the specs brought."""

    added: tuple[JobKey, ...]
    changed: tuple[JobKey, ...]
    removed: tuple[JobKey, ...]


class JobStore(Struct, eq=False):
    """Jobs by key; safe to use from several threads.

    Guarantees: a job never changes during a reconcile; the next checkout finds the spec that is
    desired then. A job whose spec is gone stays tracked until it is forgotten, and its run
    continues.
    """

    desired: Mapping[JobKey, Job] = {}
    """The jobs that have a spec. Only ever replaced as a whole."""
    needs: Needs = {}
    """What each of them waits for."""
    followers: Mapping[JobKey, Sequence[JobKey]] = {}
    """The jobs that wait for each."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _states: dict[JobKey, TrackedJob] = {}

    def update(self, jobs: Mapping[JobKey, Job]) -> Changes:
        """Make `jobs` the desired ones, and no others."""
        before, self.desired, self.needs = self.desired, dict(jobs), needs_of(jobs)
        followers: dict[JobKey, list[JobKey]] = {}
        for key, needs in self.needs.items():
            for need in needs:
                followers.setdefault(need.key, []).append(key)
        self.followers = followers
        return Changes(
            tuple(key for key in jobs if key not in before),
            tuple(key for key, job in jobs.items() if before.get(key, job) is not job),
            tuple(key for key in before if key not in jobs),
        )

    def checkout(self, key: JobKey) -> TrackedJob | None:
        """State of a job for one reconcile, brought up to date; None for an unknown job."""
        with self._lock:
            job = self.desired.get(key)
            tracked = self._states.get(key)
            if job is None:
                return tracked
            if tracked is None:
                tracked = self._states[key] = TrackedJob(job)
            elif (tracked.job.object and tracked.job.object.uid) != (job.object and job.object.uid):
                # Another object of this name: nothing that is known is of it.
                tracked = self._states[key] = TrackedJob(job)
            elif tracked.job is not job:
                tracked.replace_job(job)
            return tracked

    def record_of(self, key: JobKey) -> Record | None:
        """As it was last read or written, if the job was looked at."""
        tracked = self._states.get(key)
        return tracked.record if tracked is not None else None

    def forget(self, key: JobKey) -> bool:
        """Whether there was anything to forget; a job whose spec is desired is kept."""
        with self._lock:
            return key not in self.desired and self._states.pop(key, None) is not None

    def __contains__(self, key: JobKey) -> bool:
        return key in self.desired or key in self._states

    @property
    def known(self) -> list[JobKey]:
        """Jobs that have a spec, and those without one that are not forgotten yet."""
        with self._lock:
            return sorted({*self.desired, *self._states})
