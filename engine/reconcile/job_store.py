"""The jobs that are desired, and what the engine keeps in memory of each.

All of it can be found out again.
"""

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.api.model import Job
from engine.lifecycle.record import Record
from engine.lifecycle.rules.stamp_expiry import expiry_due
from engine.lifecycle.state import Observation, gate_position, has_ended, uid_of
from engine.refs import JobKey
from engine.render.attempt import RenderConfig
from engine.render.manifests import Manifests
from engine.render.variables import SecretValues
from engine.wellknown import ORPHANED_SINCE

Pods = Iterable[dict[str, Any]]


@dataclass(slots=True)
class Rendered:
    """What was resolved and rendered for the next attempt."""

    config: RenderConfig | None = None
    """What it was made under; None as long as nothing was prepared."""
    secrets: SecretValues = field(default_factory=SecretValues)
    secrets_resolved: bool = True
    """False while a value is missing."""
    attempt: tuple[int, tuple[tuple[str, str], ...]] | None = None
    """Number and pull policies of the attempt whose manifests are kept."""
    manifests: Manifests | None = None


@dataclass(slots=True)
class Reported:
    """What was reported of a job, so that it is reported once."""

    state: tuple[object, ...] = ()
    """The last change of state."""
    error: str = ""
    """The last error, for as long as it stays the same."""
    unchanged: bool = False
    """Whether the run was found to be over before."""
    ignored: frozenset[str] = frozenset()
    """UIDs of pods that are left alone."""
    relabelled: frozenset[str] = frozenset()
    """UIDs of pods of ours with changed labels."""


@dataclass(slots=True)
class TrackedJob:
    """One job in this process; used by one reconcile at a time."""

    job: Job
    record: Record | None = None
    unrecorded: Record | None = None
    """What the record would say, where not even that can be kept in the cluster."""
    writes: int = 0
    """How many requests to change anything were sent."""
    conflicts: int = 0
    """How many of this reconcile's met what had changed meanwhile."""
    observed: Observation = field(default_factory=Observation)
    rendered: Rendered = field(default_factory=Rendered)
    reported: Reported = field(default_factory=Reported)

    def replace_job(self, job: Job) -> None:
        """Take over another revision of the spec, or the same with other defaults."""
        self.job = job
        self.rendered = Rendered()
        self.observed.rejection, self.observed.rejections = None, 0
        self.unrecorded = None
        self.reported.error = ""

    def release(self) -> None:
        """The run is over: keep no more than says so, least of all a secret."""
        self.rendered, self.observed = Rendered(), Observation()

    def is_finished(self, source: str) -> bool:
        """Whether the run of this very spec has its outcome."""
        record = self.record
        return (
            record is not None
            and record.source == source
            and record.spec_hash == self.job.spec_hash
            and record.state.is_final
        )

    def is_started(self, pods: Pods) -> bool:
        """Whether nothing of this attempt is still to be created, so that no secret is needed."""
        record = self.record
        if record is None or record.spec_hash != self.job.spec_hash:
            return False
        gated = any(gate_position(pod) is not None for pod in pods)
        return record.open_attempt is not None and not gated

    def has_begun(self, pods: Pods) -> bool:
        """Whether a pod was made for a run that isn't over; what runs may be a stranger's."""
        known = frozenset(self.observed.created)
        known |= self.record.pod_uids if self.record is not None else frozenset()
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
            or any(
                not has_ended(pod) or expiry_due(self.job, record, pod) is not None for pod in pods
            )
        )


@dataclass(frozen=True, slots=True)
class Changes:
    """What another reading of the specs brought."""

    added: tuple[JobKey, ...]
    changed: tuple[JobKey, ...]
    removed: tuple[JobKey, ...]


class JobStore:
    """Jobs by key; safe to use from several threads.

    Guarantees: a job never changes during a reconcile; the next checkout finds the spec that is
    desired then. A job whose spec is gone stays tracked until it is forgotten, and its run
    continues.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._desired: dict[JobKey, Job] = {}
        self._states: dict[JobKey, TrackedJob] = {}

    def update(self, jobs: Mapping[JobKey, Job]) -> Changes:
        """Make `jobs` the desired ones, and no others."""
        with self._lock:
            before, self._desired = self._desired, dict(jobs)
        return Changes(
            tuple(key for key in jobs if key not in before),
            tuple(key for key, job in jobs.items() if before.get(key, job) is not job),
            tuple(key for key in before if key not in jobs),
        )

    def job(self, key: JobKey) -> Job | None:
        """The spec that is desired, without a touch to what a reconcile may have checked out."""
        with self._lock:
            return self._desired.get(key)

    def checkout(self, key: JobKey) -> TrackedJob | None:
        """State of a job for one reconcile, brought up to date; None for an unknown job."""
        with self._lock:
            job = self._desired.get(key)
            tracked = self._states.get(key)
            if job is None:
                return tracked
            if tracked is None:
                tracked = self._states[key] = TrackedJob(job)
            elif tracked.job is not job:
                tracked.replace_job(job)
            return tracked

    def forget(self, key: JobKey) -> bool:
        """Whether there was anything to forget; a job whose spec is desired is kept."""
        with self._lock:
            return key not in self._desired and self._states.pop(key, None) is not None

    def __contains__(self, key: JobKey) -> bool:
        with self._lock:
            return key in self._desired or key in self._states

    def is_desired(self, key: JobKey) -> bool:
        """Whether the job has a spec."""
        with self._lock:
            return key in self._desired

    @property
    def desired(self) -> frozenset[JobKey]:
        """The jobs that have a spec."""
        with self._lock:
            return frozenset(self._desired)

    @property
    def known(self) -> list[JobKey]:
        """Those, and the ones without a spec that are not forgotten yet."""
        with self._lock:
            return sorted({*self._desired, *self._states})

    def refused_records(self) -> dict[JobKey, str]:
        """Jobs whose record the server refuses, and its words."""
        with self._lock:
            rejections = {key: tracked.observed.rejection for key, tracked in self._states.items()}
        return {
            key: rejection.message
            for key, rejection in rejections.items()
            if rejection is not None and rejection.record_version is not None
        }
