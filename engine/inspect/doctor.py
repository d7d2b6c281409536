"""Find out what keeps the engine from working on a cluster, by requests that change nothing."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from functools import partial
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from engine import errors
from engine.api.quantity import amount
from engine.cluster import api
from engine.cluster.api import Resource
from engine.cluster.client import Client
from engine.cluster.discovery import OLDEST_SERVER, TIMEOUT, is_allowed, server_version
from engine.wellknown import DISRUPTION, MOST_AVAILABLE, PROTECT

Object = Mapping[str, Any]
Check = Callable[[Client, str], Iterable["CheckResult"]]

_ENFORCE = "pod-security.kubernetes.io/enforce"
_OF_PODS = ("cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory")
_MOST_NODES = 5
_COUNTS = ("pods", "secrets", "configmaps", "count/pods", "count/secrets", "count/configmaps")
_SCOPES = frozenset({"Terminating", "NotBestEffort"})
"""Scopes of quotas that count jobs: pods with a deadline, and a request or limit."""


class CheckStatus(StrEnum):
    """The result of a check, the worst last."""

    OK = "OK"
    SKIPPED = "SKIPPED"
    """The check could not be made."""
    DEGRADED = "DEGRADED"
    """The engine works, without what the message names."""
    FAILED = "FAILED"
    """The engine can't work."""


OK, SKIPPED, DEGRADED, FAILED = CheckStatus


class CheckResult(Struct, frozen=True):
    """One line."""

    check: str
    status: CheckStatus
    message: str
    remedy: str = ""
    namespace: str = ""
    """"" for the whole cluster."""


class Feature(Struct, frozen=True):
    """A part of the engine that takes rights."""

    name: str
    needs: str
    """Verbs and a resource, with its group behind a dot; then the next ones, behind a semicolon."""
    lost: str = ""
    """What doesn't work without them; "" if nothing does."""
    in_cluster: bool = False
    """Whether it needs them in all namespaces, by a ClusterRole."""

    @property
    def rights(self) -> tuple[tuple[str, str], ...]:
        """The verbs that it needs, each with its resource."""
        parts = map(str.split, self.needs.split(";"))
        return tuple((verb, resource) for *verbs, resource in parts for verb in verbs)


_LEASES = "leases.coordination.k8s.io"
_ELSEWHERE = "those in namespaces without a spec stay"
FEATURES = (
    Feature(
        "running jobs",
        "create get list watch patch delete pods; create get delete secrets;"
        " create get list watch update delete configmaps",
    ),
    Feature(
        "edits in place",
        "patch secrets; patch configmaps",
        "a pod's Secret and ConfigMap keep an old ttl and old labels",
    ),
    Feature("leader election", f"list create update {_LEASES}", "no engine that stays starts"),
    Feature("JobSpec objects", "get jobspecs.jobs.engine", "a file may run an object's job, too"),
    Feature("quota queue", "list watch resourcequotas", "queued jobs retry by back-off, unordered"),
    Feature("Events", "create events", "no Events of fallbacks and failures on pods"),
    Feature("pull causes", "list events", "the first message of a failed pull may be missing"),
    Feature("logs", "get pods/log", "no engine logs, and no --logs-dir"),
    Feature("--prune", "list secrets", "jobs without a spec can't be removed"),
    Feature("status", f"list {_LEASES}", "status can't say whether an engine follows"),
    Feature("nodes with images", "list nodes", "a retried pull may meet any node", in_cluster=True),
    Feature("expired pods", "list pods", _ELSEWHERE, in_cluster=True),
    Feature("ageing records", "list configmaps", _ELSEWHERE, in_cluster=True),
    Feature("missing namespaces", "get namespaces", "found by the first create", in_cluster=True),
)
"""The rights that docs/operations.md lists."""


def diagnose(client: Client, namespaces: Iterable[str]) -> list[CheckResult]:
    """The checks of the server, of each namespace, and of the rights in all namespaces.

    Errors: UnreachableError, BusyError or UnauthorizedError, after which no check can be made.
    """
    began = time.monotonic()
    answer = client.request("GET", "/version", timeout=TIMEOUT)
    took = f"{client.server} answers in {(time.monotonic() - began) * 1000:.0f} ms"
    results = [CheckResult("reach", OK, took), check_version(answer)]
    for namespace, checks in (*((name, CHECKS) for name in namespaces), ("", _OF_THE_CLUSTER)):
        for name, needs, ask in checks:
            try:
                found = [*ask(client, namespace)]
            except (errors.UnauthorizedError, errors.BusyError):
                raise
            except errors.ApiError as error:
                words = (
                    f"needs {needs}" if isinstance(error, errors.ForbiddenError) else error.cause
                )
                found = [CheckResult(one, SKIPPED, words) for one in name.split(", ")]
            results += [replace(one, namespace=namespace) for one in found]
            if found and found[0].check == "namespace" and found[0].status is FAILED:
                break
    return results


def check_version(answer: Object) -> CheckResult:
    """`answer` is that of /version."""
    version = server_version(answer)
    if version is None:
        words = "the server does not say which version it is"
        return CheckResult("version", FAILED, words, "is this an API server?")
    words = "Kubernetes {}.{}".format(*version)
    if version >= OLDEST_SERVER:
        return CheckResult("version", OK, words)
    oldest = "{}.{}".format(*OLDEST_SERVER)
    words += f", older than {oldest}, the oldest supported version"
    return CheckResult("version", FAILED, words, "upgrade the cluster, or use another context")


def check_namespace(client: Client, name: str) -> Iterator[CheckResult]:
    """Whether it exists, and holds pods to a Pod Security Standard."""
    try:
        found = client.request("GET", api.NAMESPACES.path("", name), timeout=TIMEOUT)
    except errors.NotFoundError:
        remedy = f"kubectl create namespace {name}, or choose another with -n"
        yield CheckResult("namespace", FAILED, "it does not exist", remedy)
        return
    metadata = found["metadata"]
    if "deletionTimestamp" in metadata:
        words = "it is being deleted: nothing can be created in it"
        yield CheckResult("namespace", FAILED, words, "choose another with -n")
        return
    yield CheckResult("namespace", OK, "exists")
    if level := (metadata.get("labels") or {}).get(_ENFORCE):
        yield CheckResult("pod security", OK, f"pods are held to {level}")
    else:
        words = f"no label {_ENFORCE}: a spec may ask for a privileged pod"
        remedy = f"kubectl label namespace {name} {_ENFORCE}=baseline"
        yield CheckResult("pod security", DEGRADED, words, remedy)


def check_rights(client: Client, namespace: str) -> Iterator[CheckResult]:
    """Right by right; without a namespace those in all namespaces."""
    features = (one for one in FEATURES if one.in_cluster == (not namespace))
    has_right = partial(is_allowed, client, namespace)
    return (feature_result(feature, has_right) for feature in features)


def feature_result(feature: Feature, has_right: Callable[[str, str], bool]) -> CheckResult:
    """Which of its rights are missing, and what doesn't work without them."""
    check = f"rights: {feature.name}"
    verbs: dict[str, list[str]] = {}
    for verb, resource in feature.rights:
        if not has_right(verb, resource):
            verbs.setdefault(resource, []).append(verb)
    if not verbs:
        return CheckResult(check, OK, "granted")
    missing = "; ".join(f"{resource}: {', '.join(names)}" for resource, names in verbs.items())
    remedy = f"a {'ClusterRole' if feature.in_cluster else 'Role'} with these rights"
    if not feature.lost:
        return CheckResult(check, FAILED, f"not allowed: {missing}", remedy)
    return CheckResult(check, DEGRADED, f"{feature.lost}; not allowed: {missing}", remedy)


def listed(resource: Resource, read: Callable[..., Iterator[CheckResult]]) -> Check:
    """What `read` says of the objects in a namespace."""

    def check(client: Client, namespace: str) -> Iterator[CheckResult]:
        page = api.list_page(client, resource.path(namespace), [], timeout=TIMEOUT)
        return read(page["items"], namespace)

    return check


def read_quotas(found: Iterable[Object], _namespace: str) -> Iterator[CheckResult]:
    """Quotas without room for another job."""
    quotas = {quota["metadata"]["name"]: read_full(quota) for quota in found}
    for name, full in quotas.items():
        if full:
            words = f"{name} is full ({full}): new jobs wait in the queue"
            yield CheckResult("quota", DEGRADED, words, "wait, prune, or have the quota raised")
    if not any(quotas.values()):
        yield CheckResult("quota", OK, f"{', '.join(quotas)}: not full" if quotas else "none")


def read_protection(budgets: Iterable[Object], namespace: str) -> Iterator[CheckResult]:
    """Whether evictions of pods with `disruption: protect` are refused."""
    for budget in budgets:
        spec = budget.get("spec") or {}
        labels = (spec.get("selector") or {}).get("matchLabels")
        if labels == {DISRUPTION: PROTECT} and spec.get("minAvailable") == MOST_AVAILABLE:
            words = f"{budget['metadata']['name']} refuses evictions of protected jobs"
            yield CheckResult("protection", OK, words)
            return
    remedy = (
        f"kubectl create poddisruptionbudget engine-protect -n {namespace}"
        f" --selector={DISRUPTION}={PROTECT} --min-available={MOST_AVAILABLE}"
    )
    words = "no PodDisruptionBudget: a drain evicts jobs with disruption: protect, too"
    yield CheckResult("protection", DEGRADED, words, remedy)


def read_user_namespaces(nodes: Iterable[Object], _namespace: str) -> Iterator[CheckResult]:
    """Which nodes can't run pods with users of their own, by the default handler's features."""
    unable = []
    for node in nodes:
        handlers = (node.get("status") or {}).get("runtimeHandlers") or ()
        default: Object = next((one for one in handlers if not one.get("name")), {})
        if not (default.get("features") or {}).get("userNamespaces"):
            unable.append(node["metadata"]["name"])
    if not unable:
        yield CheckResult("user namespaces", OK, "on every node: set features.userNamespaces")
        return
    more = f" and {len(unable) - _MOST_NODES} more" if len(unable) > _MOST_NODES else ""
    words = f"not on {', '.join(unable[:_MOST_NODES])}{more}: root in a job is root there"
    remedy = "a container runtime and a kernel with user namespaces; until then leave"
    yield CheckResult("user namespaces", DEGRADED, words, f"{remedy} features.userNamespaces out")


def read_full(quota: Object) -> str:
    """The used-up resources of a quota that counts jobs; "" for none."""
    spec, status = quota.get("spec") or {}, quota.get("status") or {}
    if spec.get("scopeSelector") or not set(spec.get("scopes") or ()) <= _SCOPES:
        return ""
    hard, used = status.get("hard") or {}, status.get("used") or {}
    return ", ".join(
        f"{key} {used.get(key, '0')} of {hard[key]}"
        for key in sorted(hard)
        if key in (*_COUNTS, *_OF_PODS) and amount(used.get(key, "0")) >= amount(hard[key])
    )


CHECKS: tuple[tuple[str, str, Check], ...] = (
    ("namespace, pod security", "get on namespaces", check_namespace),
    ("rights", "create on selfsubjectaccessreviews", check_rights),
    ("quota", "list on resourcequotas", listed(api.RESOURCE_QUOTAS, read_quotas)),
    ("protection", "list on poddisruptionbudgets", listed(api.DISRUPTION_BUDGETS, read_protection)),
)
"""The checks of a namespace, and the right without which each is skipped."""
_OF_THE_CLUSTER = (
    CHECKS[1],
    ("user namespaces", "list on nodes", listed(api.NODES, read_user_namespaces)),
)
