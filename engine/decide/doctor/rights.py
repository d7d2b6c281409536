"""What each feature needs to be allowed, and what is lost without it."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from engine.decide.doctor.facts import Facts, Finding, Level
from engine.refs import Right

_COORDINATION = "coordination.k8s.io"
_ROLE = "give them by the chart, by deploy/engine.yaml, or as docs/operations.md lists them"


@dataclass(frozen=True, slots=True)
class Feature:
    """Something that takes rights."""

    name: str
    """What it is called in findings."""
    rights: tuple[Right, ...]
    """All of which it needs."""
    lost: str = ""
    """What doesn't work without them; "" if nothing does."""
    in_cluster: bool = False
    """Whether it needs them in all namespaces, by a ClusterRole."""


def _rights(verbs: str, resource: str, group: str = "") -> tuple[Right, ...]:
    return tuple(Right(verb, resource, group) for verb in verbs.split())


FEATURES: tuple[Feature, ...] = (
    Feature(
        "running jobs",
        (
            *_rights("create get list watch patch delete", "pods"),
            *_rights("create get delete", "secrets"),
            *_rights("create get list watch update delete", "configmaps"),
        ),
    ),
    Feature(
        "leader election",
        _rights("get create update", "leases", _COORDINATION),
        "a second engine of the source is not noticed, and --leader-elect does not work",
    ),
    Feature(
        "quota queue",
        _rights("list watch", "resourcequotas"),
        "queued jobs ask again by their own back-off alone, in no order",
    ),
    Feature("Events", _rights("create", "events"), "no news of fallbacks and failures on pods"),
    Feature(
        "pull causes",
        _rights("list", "events"),
        "no cause where a pod says only Back-off pulling image; describe shows no Events",
    ),
    Feature(
        "logs", _rights("get", "pods/log"), "no log under a job that failed, and no engine logs"
    ),
    Feature("--prune", _rights("list", "secrets"), "jobs whose spec is gone can't be removed"),
    Feature(
        "status",
        _rights("list", "leases", _COORDINATION),
        "status and describe can't say whether an engine follows",
    ),
    Feature(
        "nodes with images",
        _rights("list", "nodes"),
        "after a failed pull, nodes that have the image are not preferred",
        in_cluster=True,
    ),
    Feature(
        "expired pods",
        _rights("list", "pods"),
        "those in namespaces without a spec stay until engine prune is run there",
        in_cluster=True,
    ),
    Feature(
        "ageing records",
        _rights("list", "configmaps"),
        "those in namespaces without a spec stay",
        in_cluster=True,
    ),
    Feature(
        "missing namespaces",
        _rights("get", "namespaces"),
        "one that is not there is found by the first create, not before anything is written",
        in_cluster=True,
    ),
)
"""What docs/operations.md lists: rights of the engine, and of people who look at jobs."""


def needed(*, in_cluster: bool) -> tuple[Right, ...]:
    """Rights of all features that are asked about in a namespace, or in all of them."""
    found = (right for f in FEATURES if f.in_cluster is in_cluster for right in f.rights)
    return tuple(dict.fromkeys(found))


def granted(rules: Iterable[Mapping[str, Any]], right: Right) -> bool:
    """Whether resource rules of a SelfSubjectRulesReview give `right` on objects of any name."""
    subresource = right.resource.partition("/")[2]
    names = (right.resource, f"*/{subresource}") if subresource else (right.resource,)
    return any(
        _has(rule, "verbs", right.verb)
        and _has(rule, "apiGroups", right.group)
        and _has(rule, "resources", *names)
        and not rule.get("resourceNames")
        for rule in rules
    )


def check_rights(facts: Facts) -> Iterator[Finding]:
    """A finding for each feature, in each namespace and in the cluster."""
    for place in facts.namespaces:
        if not place.is_missing:
            for feature in FEATURES:
                if not feature.in_cluster:
                    yield _finding(feature, place.rights, place.name)
    for feature in FEATURES:
        if feature.in_cluster:
            yield _finding(feature, facts.cluster_rights, "")


def _finding(feature: Feature, rights: frozenset[Right], namespace: str) -> Finding:
    check = f"rights: {feature.name}"
    missing = [right for right in feature.rights if right not in rights]
    if not missing:
        return Finding(check, Level.OK, "all there", namespace=namespace)
    verbs: dict[str, list[str]] = {}
    for right in missing:
        resource = f"{right.resource}.{right.group}" if right.group else right.resource
        verbs.setdefault(resource, []).append(right.verb)
    lacks = "; ".join(f"{resource}: {', '.join(names)}" for resource, names in verbs.items())
    kind = "ClusterRole" if feature.in_cluster else "Role"
    if not feature.lost:
        return Finding(check, Level.FAILED, f"not allowed: {lacks}", _ROLE, namespace)
    words = f"{feature.lost}; not allowed: {lacks}"
    return Finding(check, Level.DEGRADED, words, f"a {kind} with it, if you want that", namespace)


def _has(rule: Mapping[str, Any], key: str, *wanted: str) -> bool:
    values = rule.get(key) or ()
    return "*" in values or any(value in values for value in wanted)
