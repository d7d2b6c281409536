"""The kinds that the sandbox serves: one row each, for routing, discovery and storage."""

from __future__ import annotations

from dataclasses import dataclass, replace

_ALL = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


@dataclass(frozen=True, slots=True)
class Kind:
    """One resource and the words that the API uses for it."""

    resource: str
    kind: str
    group: str = ""
    version: str = "v1"
    namespaced: bool = True
    short: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    verbs: tuple[str, ...] = _ALL
    returns_deleted: bool = False
    custom: bool = False
    """Whether it is there only as long as its definition is."""

    @property
    def api_version(self) -> str:
        """As objects say it."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def path(self) -> str:
        """Of its API group and version."""
        root = f"/apis/{self.group}" if self.group else "/api"
        return f"{root}/{self.version}"


PODS = Kind(
    "pods",
    "Pod",
    short=("po",),
    categories=("all",),
    subresources=("binding", "eviction", "log", "status"),
    returns_deleted=True,
)
SECRETS = Kind("secrets", "Secret")
CONFIGMAPS = Kind("configmaps", "ConfigMap", short=("cm",))
NAMESPACES = Kind(
    "namespaces",
    "Namespace",
    namespaced=False,
    short=("ns",),
    subresources=("finalize", "status"),
    verbs=("create", "delete", "get", "list", "patch", "update", "watch"),
    returns_deleted=True,
)
EVENTS = Kind("events", "Event", short=("ev",))
QUOTAS = Kind(
    "resourcequotas",
    "ResourceQuota",
    short=("quota",),
    subresources=("status",),
    returns_deleted=True,
)
NODES = Kind("nodes", "Node", namespaced=False, short=("no",), subresources=("status",))
SERVICE_ACCOUNTS = Kind("serviceaccounts", "ServiceAccount", short=("sa",), returns_deleted=True)
LEASES = Kind("leases", "Lease", group="coordination.k8s.io")

CRDS = Kind(
    "customresourcedefinitions",
    "CustomResourceDefinition",
    group="apiextensions.k8s.io",
    namespaced=False,
    short=("crd", "crds"),
    categories=("api-extensions",),
    subresources=("status",),
    returns_deleted=True,
)
JOB_SPECS = Kind(
    "jobspecs",
    "JobSpec",
    group="jobs.engine",
    version="v1alpha1",
    short=("js",),
    categories=("engine",),
    subresources=("status",),
    returns_deleted=True,
    custom=True,
)
JOB_DEFAULTS = replace(
    JOB_SPECS, resource="jobdefaults", kind="JobDefaults", short=("jd",), subresources=()
)

ALL = (
    CONFIGMAPS,
    EVENTS,
    NAMESPACES,
    NODES,
    PODS,
    QUOTAS,
    SECRETS,
    SERVICE_ACCOUNTS,
    LEASES,
    CRDS,
    JOB_SPECS,
    JOB_DEFAULTS,
)
BY_RESOURCE = {(kind.group, kind.version, kind.resource): kind for kind in ALL}
BY_KIND = {(kind.api_version, kind.kind): kind for kind in ALL}
BY_NAME = {kind.resource: kind for kind in ALL}
