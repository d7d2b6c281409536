"""The types the rest of the engine works with: a job ready to run, and the operator's settings."""

import math
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from engine.api.kubernetes_schema import SHIPPED, KubernetesSchema
from engine.errors import Diagnostic, SourceLocation
from engine.refs import JobKey
from engine.values import Comparable, Hidden

if TYPE_CHECKING:
    from engine.api.effective import EffectiveSpec
    from engine.api.other_kinds import ForeignDocument
    from engine.api.yaml_reader import Document

RUN_LENGTH = 8


class OnChange(StrEnum):
    """The effect of a changed spec on a run that is under way."""

    REPLACE = "Replace"
    """It is cancelled."""
    WAIT = "Wait"
    """It may finish first."""


class PullClass(StrEnum):
    """Classes of pull failures, by the registry's words."""

    TRANSIENT = "transient"
    NOT_FOUND = "notFound"
    UNAUTHORIZED = "unauthorized"
    OTHER = "other"


class SecretRef(Hidden, frozen=True):
    """A secret whose value the engine reads."""

    variable: str
    """Its variable; empty for the password of a registry."""
    place: SourceLocation
    """Where the spec says so."""
    source: str
    """`value`, `fromEnv` or `fromFile`."""
    text: str
    """The value itself, a variable of the engine's environment, or a path below the spec's folder.
    """


RETRIED = frozenset(
    {
        "ScriptFailed",
        "OOMKilled",
        "Evicted",
        "Preempted",
        "NodeLost",
        "StartTimeout",
        "ImagePullFailed",
    }
)
"""Outcome reasons that another try can mend."""


class Retry(Struct, frozen=True):
    """How often, and after which outcome reasons, a job is tried again."""

    max: int = 0
    """How many attempts there may be after the first."""
    on: frozenset[str] = RETRIED
    """Outcome reasons that are tried again."""


class Dependency(Struct, frozen=True):
    """A job of the same source and namespace that comes first."""

    name: str
    place: SourceLocation
    """Where the spec says so."""
    may_fail: bool = False
    """Whether it is enough that it is over: `on: finished`."""


class JobObject(Comparable, frozen=True):
    """The JobSpec object that a job is, or whose status a record is."""

    NOT_COMPARED = frozenset({"suspend", "outdated"})

    uid: str
    generation: int
    """Of its spec; in a record, the one that the status follows."""
    suspend: bool = False
    """Whether no run may begin."""
    outdated: bool = False
    """Whether a run is recorded that this generation is to replace."""


class Job(Hidden, Comparable, frozen=True):
    """A spec that passed every check, with all defaults in place."""

    NOT_COMPARED = frozenset({"origin"})

    name: str
    """`metadata.name`, the job's name within its namespace."""
    namespace: str
    """Empty until the context's namespace is known."""
    names_namespace: bool
    """Whether the spec itself says the namespace, which no -n changes then."""
    labels: Mapping[str, str]
    """The user's own labels; the engine adds its own to every object."""
    annotations: Mapping[str, str]
    """The user's own annotations."""
    spec: Mapping[str, Any]
    """The effective spec: what templates and transforms read, defaults merged in."""
    timeout: float
    """Seconds it may run."""
    features: "Features"
    """What the operator has switched on."""
    start_timeout: float
    """Seconds it may wait for a node and for its images."""
    ttl: float
    """Seconds from its creation until its pod may be pruned; infinite for never."""
    ttl_after_finished: Mapping[str, float]
    """Seconds from its outcome, `success` or `failure`, until its pod may be pruned."""
    policies: Mapping[str, tuple[str, ...]]
    """Allowed pull policies of each container that has a list of them, in order."""
    secrets: tuple[SecretRef, ...]
    """Those whose values the engine reads: variables, then passwords."""
    retry: Retry
    """What of its failures is tried again."""
    on_change: OnChange
    matrix: str
    """The name in its file, where a matrix made several jobs of it; by it they are waited for."""
    depends_on: tuple[Dependency, ...]
    """What it waits for, in the order of the spec."""
    spec_hash: str
    """Identity of this revision of the spec."""
    spec_fields: str
    """A digest of each field of it, which say where two revisions differ."""
    defaulted_fields: str
    """A digest of each field that says what runs, and has its value from defaults."""
    place: SourceLocation
    """Where the spec begins."""
    folder: str
    """The folder that `fromFile` is relative to."""
    root: str
    """The folder named by the operator that it is in, or is: no link is followed below it."""
    object: JobObject | None = None
    """The object in the cluster; None for a spec in a file."""
    origin: "EffectiveSpec | None" = None
    """Its documents, if the configuration asks for them or has limits: a limit may still have
    to say at which place they are exceeded.
    """

    @property
    def key(self) -> JobKey:
        """The job's identity in the cluster."""
        return JobKey(self.namespace, self.name)

    @property
    def secret_keys(self) -> Mapping[str, Mapping[str, str]]:
        """By variable the name and key of each Secret that is in the cluster already."""
        secrets = self.spec.get("secrets", {})
        return {name: one["fromSecret"] for name, one in secrets.items() if "fromSecret" in one}

    @property
    def logins(self) -> Sequence[Mapping[str, Any]]:
        """What logs the kubelet in to registries, in the order of the passwords."""
        return [one for one in self.spec.get("registryCredentials", ()) if "password" in one]

    @property
    def pull_secrets(self) -> tuple[str, ...]:
        """Names of the Secrets with logins that are in the cluster already."""
        credentials = self.spec.get("registryCredentials", ())
        return tuple(one["fromSecret"]["name"] for one in credentials if "fromSecret" in one)

    @property
    def suspend(self) -> bool:
        """Whether no run of it may begin."""
        return bool(self.spec.get("suspend"))

    @property
    def deadline_seconds(self) -> int:
        """The timeout as activeDeadlineSeconds counts it: in whole seconds, at least 1."""
        return max(1, math.ceil(self.timeout))

    @property
    def run(self) -> str:
        """Short name of this revision of the spec, part of every object's name."""
        return self.spec_hash[:RUN_LENGTH]


SECRET_ENV = ("ENGINE_SECRET_*",)
"""The variables that specs may read, unless the operator names others."""


class Limits(Struct, frozen=True, rename="camel"):
    """What specs may ask for; None allows everything."""

    max_timeout: float | None = None
    """Seconds; a longer timeout is cut."""
    max_start_timeout: float | None = None
    """Seconds; a longer startTimeout is cut."""
    max_ttl: float | None = None
    """Seconds; a longer ttl, or time after the outcome, is cut."""
    max_protect: float | None = None
    """Seconds of timeout that a protected job may have."""
    max_attempts: int | None = None
    """How many pods one run may have, for retries and for further pull policies."""
    max_grace_period: float | None = None
    """Seconds that a pod may take to stop."""
    allowed_pull_policies: tuple[str, ...] | None = None
    """Others are taken out of the lists of specs."""
    allowed_images: tuple[str, ...] | None = None
    """Globs that images have to match."""
    allowed_namespaces: tuple[str, ...] | None = None
    """Globs that namespaces have to match."""
    allowed_service_accounts: tuple[str, ...] | None = None
    """Globs that service accounts have to match."""
    allow_pod_patch: tuple[tuple[str, ...], ...] | None = None
    """The fields of a pod that a `podPatch` may change, with all that is below them."""
    max_jobs: int | None = None
    """How many jobs one source may have."""
    max_source_bytes: int = 64 * 2**20
    """Bytes of the texts of one source, and of what its jobs take in memory."""
    max_starts: int | None = None
    """How many new runs one reading of the source may begin."""
    max_deletes_per_pass: int | None = None
    """The most that one run of the TTL rule deletes."""
    allowed_secrets: tuple[str, ...] | None = None
    """Globs that the names of Secrets have to match, but for those that the engine makes."""
    allowed_secret_env: tuple[str, ...] = SECRET_ENV
    """Globs that variables of the engine's environment have to match, to be read for a spec."""
    allow_secret_files: bool = True
    """Whether files below the specs' folders are read for them."""
    allow_secret_values: bool = True
    """Whether objects of the cluster may hold values of secrets."""


class Features(Struct, frozen=True, rename="camel"):
    """What the operator can switch off."""

    active_deadline_seconds: bool = True
    """Whether pods carry their timeout as activeDeadlineSeconds."""
    events: bool = True
    """Whether Kubernetes Events are written."""
    user_namespaces: bool = False
    """Whether pods have users of their own; every node that takes jobs has to be able to."""
    last_words: bool = True
    """Whether the kubelet puts the last lines of a container that failed into its status."""


class PullSettings(Struct, frozen=True, rename="camel"):
    """When a failed pull falls back to the next pull policy, or ends the job."""

    fallback_on: frozenset[str] = frozenset(PullClass)
    """The classes of failures that do."""
    patience: float = 120.0
    """Seconds for which the kubelet goes on with the last policy while the registry is away."""
    scout: bool = True
    """Whether one job pulls an image first that several need."""


class RecordSettings(Struct, frozen=True, rename="camel"):
    """How long the records of jobs are kept, and how much they hold."""

    ttl: float | None = 30 * 86400.0
    """Seconds for which the record of a job without a spec is kept; None is for ever."""
    history: int = 5
    """How many runs before the last one a record keeps."""


class Config(Comparable, frozen=True):
    """The operator's side: engine.yaml, or the engine's own settings."""

    NOT_COMPARED = frozenset({"document"})

    defaults: Mapping[str, Any] = {}
    """Fields of a spec, below those of every JobDefaults."""
    limits: Limits = Limits()
    """What specs may ask for."""
    features: Features = Features()
    pull: PullSettings = PullSettings()
    """How pull policies fall back."""
    prune_annotations: tuple[str, ...] = ()
    """Annotations of other cleaners that hold a TTL for `engine prune`, beside its own."""
    records: RecordSettings = RecordSettings()
    """How long the records of jobs are kept, and how much they hold."""
    kubernetes: KubernetesSchema = SHIPPED
    """The types that fields of Kubernetes are checked against."""
    allow_secret_env: tuple[str, ...] = ()
    """Globs of --allow-secret-env; the limits have them, too, however often the file is read."""
    document: "Document | None" = None
    """Its document, for the places of its values."""
    keep_origins: bool = False
    """Whether every job keeps its documents: they take memory."""


class LoadedJobs(Struct, frozen=True):
    """Result of loading."""

    jobs: tuple[Job, ...]
    """Those without an error, in the order of their places."""
    problems: tuple[Diagnostic, ...]
    """Every finding on the way, warnings included."""
    foreign: "tuple[ForeignDocument, ...]" = ()
    """Documents of other API groups that were skipped."""
    complete: bool = True
    """False where more jobs may exist, behind links that aren't followed. Nothing may be removed
    for want of a spec then."""
