"""What the engine keeps in memory of a job; all of it can be found out again."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from engine.api.model import Job
from engine.decide.record import Record
from engine.decide.rules.stamp_expiry import expiry_due
from engine.decide.situation import Rejection, gate_position, has_ended, uid_of
from engine.reconcile.rendering import RenderConfig
from engine.render.manifests import Manifests
from engine.render.variables import SecretValues
from engine.status.outcome import Outcome
from engine.wellknown import GONE_SINCE

Pods = Iterable[dict[str, Any]]


@dataclass(slots=True)
class Observations:
    """What was observed of a job's pods, and what no watch tells again."""

    created: dict[str, str] = field(default_factory=dict)
    """UIDs of pods that this engine made, and the record's version then; "" for none."""
    adopted: frozenset[str] = frozenset()
    """UIDs of pods in no record that equal what would be created."""
    labels_restored_at: dict[str, datetime] = field(default_factory=dict)
    """When a pod's labels were last put back, or that was tried, by UID."""
    dependents_ready: frozenset[str] = frozenset()
    """UIDs of pods whose Secret and ConfigMap are known to exist."""
    secrets_missing: dict[str, str] = field(default_factory=dict)
    """What pods refer to that isn't there, by UID: others' Secrets, or keys in them."""
    dependents_looked_up: dict[tuple[str, bool], datetime] = field(default_factory=dict)
    """When they were looked up, by the pod's UID and whether it had said that it lacks one."""
    deleted_uids: frozenset[str] = frozenset()
    """UIDs that the API itself no longer has."""
    deleted_outcomes: dict[str, Outcome] = field(default_factory=dict)
    """What the states of a pod that is gone told of its end, by UID."""
    refreshed_at: dict[str, datetime] = field(default_factory=dict)
    """When the API itself was last asked for a pod and its record, by UID."""
    pull_causes: dict[tuple[str, str], str] = field(default_factory=dict)
    """The first real message of a pull failure, by UID and container."""
    pull_failing_since: dict[tuple[str, str], datetime] = field(default_factory=dict)
    """When a pull failure was first seen, by UID and container."""
    rejection: Rejection | None = None
    """The answer to the last write that a pod needs to start, if it was no."""
    rejections: int = 0
    """How many of them there were in a row."""
    create_unanswered: bool = False
    """Whether a pod may be there of which nothing is known: its create was never answered."""


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


@dataclass(slots=True)
class JobState:
    """One job in this process; used by one reconcile at a time."""

    job: Job
    record: Record | None = None
    unrecorded: Record | None = None
    """What the record would say, where not even that can be kept in the cluster."""
    writes: int = 0
    """How many requests to change anything were sent."""
    conflicts: int = 0
    """How many of this reconcile's met what had changed meanwhile."""
    observed: Observations = field(default_factory=Observations)
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
        self.rendered, self.observed = Rendered(), Observations()

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
            GONE_SINCE in record.annotations
            or any(
                not has_ended(pod) or expiry_due(self.job, record, pod) is not None for pod in pods
            )
        )
