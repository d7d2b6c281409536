"""Of a namespace: whether it is there, and what in it keeps jobs from starting."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from engine.decide.doctor.facts import Facts, Finding, Level, NamespaceFacts, Object
from engine.decide.follower import read_follower
from engine.decide.situation import is_terminating
from engine.kubeschema.quantity import amount
from engine.podsecurity import Level as PodSecurityLevel
from engine.refs import Right

_ENFORCE = "pod-security.kubernetes.io/enforce"
_ASKED = ("cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory")
"""What a quota on it has every container of a pod say."""
_COUNTED = ("pods", "secrets", "configmaps", "count/pods", "count/secrets", "count/configmaps")
_SCOPES = frozenset({"Terminating", "NotBestEffort"})
"""Scopes of quotas that count jobs: pods with a deadline, and a request or limit."""
_READ_LEASE = Right("get", "leases", "coordination.k8s.io")


def check_namespace(facts: Facts) -> Iterator[Finding]:
    """A namespace that isn't there, or is about to go."""
    for place in facts.namespaces:
        name = place.name
        if place.is_missing:
            remedy = f"kubectl create namespace {name}, or choose another with -n"
            yield Finding("namespace", Level.FAILED, "there is none of that name", remedy, name)
        elif place.namespace is not None and is_terminating(place.namespace):
            words = "it is being deleted: nothing can be created in it"
            yield Finding("namespace", Level.FAILED, words, "wait, or choose another", name)
        elif place.namespace is None:
            yield _unread("namespace", name, "get namespaces")
        else:
            yield Finding("namespace", Level.OK, "is there", namespace=name)


def check_quotas(facts: Facts) -> Iterator[Finding]:
    """Quotas that are used up, or that ask of every pod what specs may not say."""
    for place in _there(facts):
        if place.quotas is None:
            yield _unread("quota", place.name, "list resourcequotas")
            continue
        if not place.quotas:
            yield Finding("quota", Level.OK, "none", namespace=place.name)
        for quota in place.quotas:
            yield _quota_finding(quota, place)


def check_limit_ranges(facts: Facts) -> Iterator[Finding]:
    """What containers get that say nothing, and what none may go beyond: news, no fault."""
    for place in _there(facts):
        if place.limit_ranges is None:
            yield _unread("limit range", place.name, "list limitranges")
            continue
        words = [
            f"{limit.get('type')} {what} {_amounts(limit[key])}"
            for entry in place.limit_ranges
            for limit in (entry.get("spec") or {}).get("limits") or ()
            for key, what in (("defaultRequest", "asks for"), ("default", "gets"),
                              ("min", "at least"), ("max", "at most"))
            if limit.get(key)
        ]  # fmt: skip
        yield Finding("limit range", Level.OK, "; ".join(words) or "none", namespace=place.name)


def check_pod_security(facts: Facts) -> Iterator[Finding]:
    """What the server refuses and `validate` lets pass."""
    for place in _there(facts):
        if place.namespace is None:
            yield _unread("pod security", place.name, "get namespaces")
            continue
        labels = place.namespace["metadata"].get("labels") or {}
        enforced = labels.get(_ENFORCE, PodSecurityLevel.PRIVILEGED.value)
        levels = list(PodSecurityLevel)
        if enforced not in levels:
            words = f"{_ENFORCE} is {enforced!r}, which is no level: the server takes restricted"
            enforced = PodSecurityLevel.RESTRICTED.value
        else:
            words = f"pods are held to {enforced}"
        ours = facts.pod_security
        if levels.index(PodSecurityLevel(enforced)) <= levels.index(ours):
            yield Finding("pod security", Level.OK, words, namespace=place.name)
            continue
        words += f", and validate holds them to {ours}: a spec may be refused when it starts"
        remedy = f"limits.podSecurity: {enforced} in the engine's configuration (--config)"
        yield Finding("pod security", Level.DEGRADED, words, remedy, place.name)


def check_registry_secrets(facts: Facts) -> Iterator[Finding]:
    """Logins that pods are promised and don't get: a pull without one says no such image."""
    for place in _there(facts):
        there, named = place.registry_secrets, place.pull_secrets
        if there is None or named is None:
            what = "list secrets" if there is None else "get serviceaccounts"
            yield _unread("registry secrets", place.name, what)
            continue
        missing = sorted(named - there)
        if missing:
            words = (
                f"the default service account names {', '.join(missing)}: missing, or of another"
                " type than kubernetes.io/dockerconfigjson; pulls go without that login"
            )
            remedy = f"kubectl create secret docker-registry -n {place.name} {missing[0]} ..."
            yield Finding("registry secrets", Level.DEGRADED, words, remedy, place.name)
            continue
        used = f", for every pod: {', '.join(sorted(named))}" if named else ""
        words = f"{len(there)}{used}" if there else "none"
        yield Finding("registry secrets", Level.OK, words, namespace=place.name)


def check_lease(facts: Facts) -> Iterator[Finding]:
    """Whether an engine leads that has not been heard of for long."""
    for place in _there(facts):
        if place.lease is None and _READ_LEASE not in place.rights:
            yield _unread("lease", place.name, "get leases")
            continue
        follower = read_follower(place.lease, facts.now) if place.lease is not None else None
        if follower is None or not follower.holder:
            words = f"no engine leads source {facts.source}"
            yield Finding("lease", Level.OK, words, namespace=place.name)
            continue
        ago = ""
        if follower.renewed_at is not None:
            ago = f" {max(0, int((facts.now - follower.renewed_at).total_seconds()))}s ago"
        if follower.is_alive:
            words = f"{follower.holder} leads source {facts.source}, renewed{ago}"
            yield Finding("lease", Level.OK, words, namespace=place.name)
            continue
        words = f"{follower.holder} led source {facts.source} and renewed last{ago}: nobody goes on"
        remedy = "look at its log, or start an engine: it takes over by itself"
        yield Finding("lease", Level.DEGRADED, words, remedy, place.name)


def _there(facts: Facts) -> Iterable[NamespaceFacts]:
    return (place for place in facts.namespaces if not place.is_missing)


def _unread(check: str, namespace: str, right: str) -> Finding:
    words = f"not looked at, for want of the right: {right}"
    return Finding(check, Level.OK, words, namespace=namespace)


def _quota_finding(quota: Object, place: NamespaceFacts) -> Finding:
    name, status = quota["metadata"]["name"], quota.get("status") or {}
    hard = status.get("hard") or (quota.get("spec") or {}).get("hard") or {}
    used = status.get("used") or {}
    concerned = {key: hard[key] for key in sorted(hard) if key in (*_COUNTED, *_ASKED)}
    spec = quota.get("spec") or {}
    if spec.get("scopeSelector") or not set(spec.get("scopes") or ()) <= _SCOPES:
        text = f"{name} counts pods of its scopes alone"
        return Finding("quota", Level.OK, text, namespace=place.name)
    full = [key for key in concerned if amount(used.get(key, "0")) >= amount(hard[key])]
    words = ", ".join(f"{key} {used.get(key, '0')} of {hard[key]}" for key in concerned)
    if full:
        told = ", ".join(f"{key} {used.get(key, '0')} of {hard[key]}" for key in full)
        remedy = "wait, prune, or have the quota raised"
        text = f"{name} is used up ({told}): new jobs wait in the queue"
        return Finding("quota", Level.DEGRADED, text, remedy, place.name)
    lacking = [key for key in concerned if key in _ASKED and not _has_default(key, place)]
    if lacking:
        text = f"{name} refuses pods whose containers don't say {', '.join(lacking)}"
        remedy = "spec.resources in the specs or a JobDefaults, or a LimitRange with defaults"
        return Finding("quota", Level.DEGRADED, text, remedy, place.name)
    return Finding("quota", Level.OK, f"{name}: {words}" if words else name, namespace=place.name)


def _has_default(key: str, place: NamespaceFacts) -> bool:
    """Whether a LimitRange says it for containers that don't; true where nobody may look."""
    if place.limit_ranges is None:
        return True
    kind, _, resource = key.rpartition(".")
    fields = ("default",) if kind == "limits" else ("defaultRequest", "default")
    return any(
        (resource or key) in (limit.get(field) or {})
        for entry in place.limit_ranges
        for limit in (entry.get("spec") or {}).get("limits") or ()
        for field in fields
        if limit.get("type") == "Container"
    )


def _amounts(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {value}" for key, value in sorted(values.items()))
