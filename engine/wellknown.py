"""Labels, annotations and other fixed words that the engine writes on objects."""

from collections.abc import Iterator, Mapping
from typing import Any

MANAGED_BY = "app.kubernetes.io/managed-by"
MANAGER = "engine"
JOB = "jobs.engine/job"
RUN = "jobs.engine/run"
ATTEMPT = "jobs.engine/attempt"
SOURCE = "jobs.engine/source"
COMPONENT = "jobs.engine/component"
RECORD = "record"
TTL = "jobs.engine/ttl"
EXPIRES_AT = "jobs.engine/expires-at"
HOLD = "jobs.engine/hold"
LAST_APPLIED = "jobs.engine/last-applied"
"""On a pod: what the engine wrote there of how the job is kept."""
DISRUPTION, PROTECT = "jobs.engine/disruption", "protect"
"""A label on pods that a PodDisruptionBudget selects, and its value."""
MOST_AVAILABLE = 2**31 - 1
"""More pods than there ever are: a budget that wants so many refuses every eviction."""
NOT_EVICTED = {
    "karpenter.sh/do-not-disrupt": "true",
    "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
}
"""Annotations of such pods, for those who remove nodes without asking for an eviction first."""
FENCE = "jobs.engine/fence"
"""On a pod: a number that is higher than that of every pod of the job before it."""
ORPHANED_SINCE = "jobs.engine/orphaned-since"
ORPHANED_ON = "jobs.engine/orphaned-on"
"""Label with the day of the mark: a list passes over records that have long to go."""
TTL_FROM = "jobs.engine/ttl-from"
SCHEDULING = "scheduling"
"""Value of TTL_FROM on pods that others held back: their TTL counts from when they got a node."""

FOREIGN_TTLS = ("cleaner.kubernetes.gitlab.org/ttl",)
"""TTL annotations of other cleaners that `engine prune` obeys, too."""
OPT_IN_TTLS = ("pod-cleanup.gitlab.com/ttl", "janitor/ttl")
"""TTL annotations that it obeys only if the operator names them: they are meant for another
cleaner.
"""

CONFIG_VOLUME, CONFIG_MOUNT = "engine-config", "/engine"
"""Where scripts and files are."""
RESERVED_PREFIX = "jobs.engine/"

MANAGED_BY_ENGINE = "jobs.engine/engine"
"""`spec.managedBy` of a JobSpec object that this engine runs, if it says anything."""
TOOLS_PREFIXES = (
    "kubectl.kubernetes.io/",
    "argocd.argoproj.io/",
    "kustomize.toolkit.fluxcd.io/",
    "helm.toolkit.fluxcd.io/",
    "meta.helm.sh/",
    "helm.sh/",
)
"""Labels and annotations of a JobSpec object that say which tool applied it, and are no pod's."""

OBJECTS_SOURCE = "objects"
"""The source of JobSpec objects, without --source."""
DEFAULT_SOURCE = "default"
"""The source of every reconcile without --source."""

HOSTNAME = "kubernetes.io/hostname"
"""Label of a node, which may differ from its name."""

DEFAULT_SERVICE_ACCOUNT = "default"
"""The account of a pod that names none."""
GRACE_PERIOD = 30
"""Seconds that the cluster gives a pod to stop, if the pod doesn't say."""


def reserved_metadata(metadata: Any) -> Iterator[tuple[str, ...]]:
    """Paths of what only the engine may set: its keys, and what holds or owns an object."""
    for field, value in metadata.items() if isinstance(metadata, Mapping) else ():
        if field in ("labels", "annotations") and isinstance(value, Mapping):
            for key in value:
                if str(key).startswith(RESERVED_PREFIX):
                    yield field, key
        elif field in ("finalizers", "ownerReferences") and value:
            yield (field,)


def default_pull_policy(image: str) -> str:
    """Always for the tag `latest`, and where there is neither tag nor digest; else IfNotPresent."""
    name, _, digest = image.partition("@")
    tag = name.rpartition("/")[2].partition(":")[2]
    return "Always" if tag == "latest" or not (tag or digest) else "IfNotPresent"


def allowed_pull_policy(image: str, allowed: tuple[str, ...]) -> str:
    """The default one, if it is among those that are allowed; else the first of these."""
    policy = default_pull_policy(image)
    return policy if policy in allowed else allowed[0]
