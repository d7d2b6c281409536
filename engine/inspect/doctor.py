"""Find out what keeps the engine from working on a cluster, by requests that change nothing."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from engine.api.quantity import amount
from engine.cluster import api
from engine.cluster.client import Client
from engine.cluster.discovery import (
    OLDEST_SERVER,
    TIMEOUT,
    is_allowed,
    server_version,
)
from engine.errors import (
    ApiError,
    BusyError,
    ForbiddenError,
    NotFoundError,
    UnauthorizedError,
    UnreachableError,
)
from engine.refs import Right

Object = Mapping[str, Any]

TOTAL_TIMEOUT = 30.0
"""Seconds for all requests together; each has TIMEOUT."""
_ENFORCE = "pod-security.kubernetes.io/enforce"
_ROLE = "give them by the chart, by deploy/engine.yaml, or as docs/operations.md lists them"
_OF_PODS = ("cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory")
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


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One line."""

    check: str
    status: CheckStatus
    message: str
    remedy: str = ""
    namespace: str = ""
    """"" for the whole cluster."""


@dataclass(frozen=True, slots=True)
class Feature:
    """A part of the engine that takes rights."""

    name: str
    needs: str
    """Verbs and a resource, with its group behind a dot; then the next ones, behind a semicolon."""
    lost: str = ""
    """What doesn't work without them; "" if nothing does."""
    in_cluster: bool = False
    """Whether it needs them in all namespaces, by a ClusterRole."""

    @property
    def rights(self) -> tuple[Right, ...]:
        """All of which it needs."""
        found = []
        for *verbs, resource in map(str.split, self.needs.split(";")):
            name, _, group = resource.partition(".")
            found += [Right(verb, name, group) for verb in verbs]
        return tuple(found)


_LEASES = "leases.coordination.k8s.io"
FEATURES = (
    Feature(
        "running jobs",
        "create get list watch patch delete pods; create get delete secrets;"
        " create get list watch update delete configmaps",
    ),
    Feature(
        "leader election",
        f"get create update {_LEASES}",
        "an engine that stays does not start",
    ),
    Feature("quota queue", "list watch resourcequotas", "queued jobs retry by back-off, unordered"),
    Feature("Events", "create events", "no Events of fallbacks and failures on pods"),
    Feature("pull causes", "list events", "the first message of a failed pull may be missing"),
    Feature("logs", "get pods/log", "no log under a job that failed, and no engine logs"),
    Feature("--prune", "list secrets", "jobs without a spec can't be removed"),
    Feature("status", f"list {_LEASES}", "status can't say whether an engine follows"),
    Feature("nodes with images", "list nodes", "a retried pull may meet any node", in_cluster=True),
    Feature(
        "expired pods",
        "list pods",
        "those in namespaces without a spec stay until engine prune is run there",
        in_cluster=True,
    ),
    Feature(
        "ageing records",
        "list configmaps",
        "those in namespaces without a spec stay",
        in_cluster=True,
    ),
    Feature(
        "missing namespaces",
        "get namespaces",
        "a missing one is found by the first create, not before anything is written",
        in_cluster=True,
    ),
)
"""The rights that docs/operations.md lists."""


@dataclass(frozen=True, slots=True)
class Probe:
    """What a check may ask: a namespace, and the time that is left for requests."""

    client: Client
    deadline: float
    """By the monotonic clock."""
    namespace: str = ""

    @property
    def timeout(self) -> float:
        """Seconds for the next request. Errors: UnreachableError where none are left."""
        left = self.deadline - time.monotonic()
        if left <= 0:
            words = f"the server did not answer all requests in {TOTAL_TIMEOUT:.0f}s"
            raise UnreachableError(words, where=self.client.server, hint="is it overloaded?")
        return min(left, TIMEOUT)

    def get(self, path: str) -> dict[str, Any]:
        return self.client.request("GET", path, timeout=self.timeout)

    def is_allowed(self, right: Right) -> bool:
        return is_allowed(self.client, right, self.namespace, self.timeout)


def diagnose(client: Client, namespaces: Iterable[str]) -> list[CheckResult]:
    """The checks of the server, of each namespace, and of the rights in all namespaces.

    Errors: UnreachableError, BusyError or UnauthorizedError, after which no check can be made.
    """
    began = time.monotonic()
    server = Probe(client, began + TOTAL_TIMEOUT)
    answer = server.get("/version")
    took = f"{client.server} answers in {(time.monotonic() - began) * 1000:.0f} ms"
    results = [CheckResult("reach", OK, took), check_version(answer)]
    for name in namespaces:
        for check in CHECKS:
            found = check.results(replace(server, namespace=name))
            results += found
            if found[0].check == "namespace" and found[0].status is FAILED:
                break
    return [*results, *_RIGHTS.results(server)]


def check_version(answer: Object) -> CheckResult:
    """`answer` is that of /version."""
    version = server_version(answer)
    if version is None:
        words = "the server does not say which version it is"
        return CheckResult("version", FAILED, words, "is this an API server?")
    words = "Kubernetes {}.{}".format(*version)
    if version >= OLDEST_SERVER:
        return CheckResult("version", OK, words)
    words += ", older than {}.{}, the oldest supported version".format(*OLDEST_SERVER)
    return CheckResult("version", FAILED, words, "upgrade the cluster, or use another context")


def check_namespace(probe: Probe) -> Iterator[CheckResult]:
    """Whether it exists, and holds pods to a Pod Security Standard."""
    name = probe.namespace
    try:
        metadata = probe.get(api.NAMESPACES.path("", name))["metadata"]
    except NotFoundError:
        remedy = f"kubectl create namespace {name}, or choose another with -n"
        yield CheckResult("namespace", FAILED, "it does not exist", remedy)
        return
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


def check_rights(probe: Probe) -> Iterator[CheckResult]:
    """Right by right; without a namespace those in all namespaces."""
    features = (one for one in FEATURES if one.in_cluster == (not probe.namespace))
    return (feature_result(feature, probe.is_allowed) for feature in features)


def feature_result(feature: Feature, has_right: Callable[[Right], bool]) -> CheckResult:
    """Which of its rights are missing, and what doesn't work without them."""
    check = f"rights: {feature.name}"
    verbs: dict[str, list[str]] = {}
    for right in feature.rights:
        if not has_right(right):
            resource = f"{right.resource}.{right.group}" if right.group else right.resource
            verbs.setdefault(resource, []).append(right.verb)
    if not verbs:
        return CheckResult(check, OK, "granted")
    missing = "; ".join(f"{resource}: {', '.join(names)}" for resource, names in verbs.items())
    if not feature.lost:
        return CheckResult(check, FAILED, f"not allowed: {missing}", _ROLE)
    remedy = f"a {'ClusterRole' if feature.in_cluster else 'Role'} with these rights"
    return CheckResult(check, DEGRADED, f"{feature.lost}; not allowed: {missing}", remedy)


def check_quotas(probe: Probe) -> Iterator[CheckResult]:
    """Quotas without room for another job."""
    path = api.RESOURCE_QUOTAS.path(probe.namespace)
    page = api.list_page(probe.client, path, [], timeout=probe.timeout)
    quotas = {quota["metadata"]["name"]: read_full(quota) for quota in page["items"]}
    for name, full in quotas.items():
        if full:
            words = f"{name} is full ({full}): new jobs wait in the queue"
            yield CheckResult("quota", DEGRADED, words, "wait, prune, or have the quota raised")
    if not any(quotas.values()):
        yield CheckResult("quota", OK, f"{', '.join(quotas)}: not full" if quotas else "none")


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


@dataclass(frozen=True, slots=True)
class Check:
    """One check, and the right without which it is skipped."""

    name: str
    needs: str
    ask: Callable[[Probe], Iterator[CheckResult]]

    def results(self, probe: Probe) -> list[CheckResult]:
        """Errors: those that keep every other check from being made, too."""
        try:
            return [replace(found, namespace=probe.namespace) for found in self.ask(probe)]
        except (UnauthorizedError, BusyError):
            raise
        except ApiError as error:
            words = f"needs {self.needs}" if isinstance(error, ForbiddenError) else error.cause
            return [CheckResult(self.name, SKIPPED, words, namespace=probe.namespace)]


_RIGHTS = Check("rights", "create on selfsubjectaccessreviews", check_rights)
CHECKS = (
    Check("namespace", "get on namespaces", check_namespace),
    _RIGHTS,
    Check("quota", "list on resourcequotas", check_quotas),
)
"""Those of a namespace."""
