"""The types the rest of the engine works with: a job ready to run, and the operator's settings."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from engine.errors import Place, Problem
from engine.kubeschema import KubernetesTypes, shipped_types
from engine.refs import JobKey

RUN_LENGTH = 8


class OnChange(StrEnum):
    """What happens to a run that is under way when its spec changes."""

    REPLACE = "Replace"
    WAIT = "Wait"


class PullClass(StrEnum):
    """Why an image could not be pulled, as far as the registry's words tell."""

    TRANSIENT = "transient"
    NOT_FOUND = "notFound"
    UNAUTHORIZED = "unauthorized"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class SecretSource:
    """Where one secret value comes from; exactly one of the three is set."""

    place: Place
    value: str | None = field(default=None, repr=False)
    from_env: str | None = None
    from_file: str | None = None


@dataclass(frozen=True, slots=True)
class RegistryCredential:
    registry: str
    username: str
    password: SecretSource


@dataclass(frozen=True, slots=True)
class Retry:
    """How often, and after which outcome reasons, a job is tried again."""

    max: int = 0
    on: frozenset[str] = frozenset({"Evicted", "NodeLost"})


@dataclass(frozen=True, slots=True)
class Job:
    """A spec that passed every check, with all defaults in place.

    `namespace` is empty until the context's namespace is known. `spec` is the effective spec,
    defaults merged in. Times are seconds; `timeout` is None when activeDeadlineSeconds is off.
    `policies` has an entry for each container with a list of pull policies, already filtered.
    """

    name: str
    namespace: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    spec: Mapping[str, Any] = field(repr=False)
    timeout: float | None
    start_timeout: float
    ttl: float
    policies: Mapping[str, tuple[str, ...]]
    secrets: Mapping[str, SecretSource]
    credentials: tuple[RegistryCredential, ...]
    retry: Retry
    on_change: OnChange
    spec_hash: str
    place: Place
    folder: str

    @property
    def key(self) -> JobKey:
        return JobKey(self.namespace, self.name)

    @property
    def run(self) -> str:
        """Short name of this revision of the spec, part of every object's name."""
        return self.spec_hash[:RUN_LENGTH]


@dataclass(frozen=True, slots=True)
class Limits:
    """What specs may ask for; None allows everything."""

    max_timeout: float | None = None
    allowed_pull_policies: tuple[str, ...] | None = None
    allowed_images: tuple[str, ...] | None = None
    allowed_namespaces: tuple[str, ...] | None = None
    max_deletes_per_pass: int | None = None


@dataclass(frozen=True, slots=True)
class Features:
    active_deadline_seconds: bool = True
    events: bool = True


@dataclass(frozen=True, slots=True)
class PullSettings:
    """Which classes of pull failures fall back, after how many seconds of failing."""

    fallback_on: frozenset[str] = frozenset(PullClass)
    grace: float = 0.0


@dataclass(frozen=True, slots=True)
class PruneSettings:
    """How many of the failed pods of each job are kept, whatever their TTL."""

    keep_failed: int = 0


@dataclass(frozen=True, slots=True)
class Config:
    """The operator's side: engine.yaml, or what holds without one."""

    defaults: Mapping[str, Any] = field(default_factory=dict)
    limits: Limits = Limits()
    features: Features = Features()
    pull: PullSettings = PullSettings()
    prune: PruneSettings = PruneSettings()
    kubernetes: KubernetesTypes = shipped_types


@dataclass(frozen=True, slots=True)
class LoadedJobs:
    """Result of loading: jobs in the order of their places, and every finding on the way."""

    jobs: tuple[Job, ...]
    problems: tuple[Problem, ...]
