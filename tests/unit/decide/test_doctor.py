"""What the doctor concludes: OK, degraded and what is lost, or failed and what to do."""

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from engine.decide.doctor import Facts, Finding, Level, diagnose
from engine.decide.doctor.facts import NamespaceFacts
from engine.decide.doctor.rights import FEATURES, granted, needed
from engine.decide.lease import acquired
from engine.podsecurity import Level as PodSecurityLevel
from engine.refs import Right
from tests.support.pages import table_of

NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
PLACE = NamespaceFacts(
    "ci",
    namespace={"metadata": {"name": "ci"}},
    rights=frozenset(needed(in_cluster=False)),
    quotas=(),
    limit_ranges=(),
    registry_secrets=frozenset(),
    pull_secrets=frozenset(),
)
WELL = Facts(
    server="https://cluster.example",
    seconds=0.012,
    version=(1, 36),
    oldest=(1, 30),
    skew=0.0,
    now=NOW,
    source="default",
    pod_security=PodSecurityLevel.PRIVILEGED,
    namespaces=(PLACE,),
    cluster_rights=frozenset(needed(in_cluster=True)),
)
LEASE = acquired(None, namespace="ci", source="default", identity="host_1", duration=15, now=NOW)


def of(check: str, facts: Facts) -> Finding:
    """The one finding of a check."""
    (finding,) = [finding for finding in diagnose(facts) if finding.check == check]
    return finding


def place(**changes: Any) -> Facts:
    return replace(WELL, namespaces=(replace(PLACE, **changes),))


def quota(hard: dict[str, str], used: dict[str, str]) -> dict[str, Any]:
    return {"metadata": {"name": "q"}, "status": {"hard": hard, "used": used}}


def test_where_nothing_is_wrong_everything_is_ok() -> None:
    assert {finding.level for finding in diagnose(WELL)} == {Level.OK}
    assert not [finding for finding in diagnose(WELL) if finding.remedy]


@pytest.mark.parametrize(
    ("check", "facts", "level", "words", "remedy"),
    [
        ("version", replace(WELL, version=(1, 29)), Level.FAILED, "1.29, older than 1.30", "upgr"),
        ("version", replace(WELL, version=None), Level.FAILED, "does not say", "an API server?"),
        ("clock", replace(WELL, skew=90.0), Level.DEGRADED, "90s behind", "NTP"),
        ("clock", replace(WELL, skew=-90.0), Level.DEGRADED, "90s ahead of", "NTP"),
        ("clock", replace(WELL, skew=1.0), Level.OK, "agrees", ""),
        (
            "namespace",
            place(namespace=None, is_missing=True),
            Level.FAILED,
            "there is none",
            "kubectl create namespace ci",
        ),
        (
            "namespace",
            place(namespace={"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}),
            Level.FAILED,
            "being deleted",
            "wait",
        ),
        ("namespace", place(namespace=None), Level.OK, "not looked at", ""),
        (
            "quota",
            place(quotas=[quota({"pods": "10"}, {"pods": "10"})]),
            Level.DEGRADED,
            "used up (pods 10 of 10): new jobs wait",
            "raised",
        ),
        (
            "quota",
            place(quotas=[quota({"pods": "10"}, {"pods": "2"})]),
            Level.OK,
            "q: pods 2 of 10",
            "",
        ),
        (
            "quota",
            place(quotas=[quota({"limits.memory": "1Gi"}, {"limits.memory": "1024Mi"})]),
            Level.DEGRADED,
            "used up",
            "raised",
        ),
        (
            "quota",
            place(quotas=[quota({"requests.cpu": "2"}, {"requests.cpu": "500m"})]),
            Level.DEGRADED,
            "refuses pods whose containers don't say requests.cpu",
            "LimitRange",
        ),
        (
            "quota",
            place(quotas=[quota({"services": "1"}, {"services": "1"})]),
            Level.OK,
            "q",
            "",
        ),
        (
            "pod security",
            place(
                namespace={
                    "metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}
                }
            ),
            Level.DEGRADED,
            "held to restricted, and validate holds them to privileged",
            "limits.podSecurity: restricted",
        ),
        (
            "registry secrets",
            place(pull_secrets=frozenset({"login"})),
            Level.DEGRADED,
            "names login: missing",
            "docker-registry -n ci login",
        ),
        (
            "registry secrets",
            place(pull_secrets=frozenset({"a"}), registry_secrets=frozenset({"a", "b"})),
            Level.OK,
            "2, for every pod: a",
            "",
        ),
        ("registry secrets", place(pull_secrets=None), Level.OK, "get serviceaccounts", ""),
        ("lease", place(), Level.OK, "no engine leads source default", ""),
        ("lease", place(rights=frozenset()), Level.OK, "right: get leases", ""),
        ("lease", place(lease=LEASE), Level.OK, "host_1 leads source default, renewed 0s ago", ""),
        (
            "lease",
            replace(place(lease=LEASE), now=NOW + timedelta(minutes=5)),
            Level.DEGRADED,
            "host_1 led source default and renewed last 300s ago: nobody goes on",
            "start an engine",
        ),
    ],
)
def test_each_check_says_what_is_lost_or_what_to_do(
    check: str, facts: Facts, level: Level, words: str, remedy: str
) -> None:
    finding = of(check, facts)
    assert finding.level is level
    assert words in finding.message
    assert remedy in finding.remedy
    assert bool(finding.remedy) is bool(remedy)


@pytest.mark.parametrize(
    ("scope", "level"),
    [
        ({"scopes": ["Terminating"]}, Level.DEGRADED),
        ({"scopes": ["NotTerminating"]}, Level.OK),
        ({"scopes": ["BestEffort"]}, Level.OK),
        ({"scopeSelector": {"matchExpressions": []}}, Level.OK),
    ],
)
def test_a_quota_that_does_not_count_jobs_is_no_matter(scope: dict[str, Any], level: Level) -> None:
    full = quota({"pods": "1"}, {"pods": "1"})
    assert of("quota", place(quotas=[{**full, "spec": scope}])).level is level


def test_a_limit_range_with_defaults_satisfies_a_quota_that_asks_for_them() -> None:
    limits = {"type": "Container", "defaultRequest": {"cpu": "100m"}, "max": {"memory": "1Gi"}}
    facts = place(
        quotas=[quota({"requests.cpu": "2"}, {"requests.cpu": "1"})],
        limit_ranges=[{"spec": {"limits": [limits]}}],
    )
    assert of("quota", facts).level is Level.OK
    words = "Container asks for cpu 100m; Container at most memory 1Gi"
    assert of("limit range", facts).message == words


def test_pods_that_validate_holds_to_as_much_as_the_server_are_no_finding() -> None:
    labels = {"pod-security.kubernetes.io/enforce": "baseline"}
    facts = place(namespace={"metadata": {"labels": labels}})
    facts = replace(facts, pod_security=PodSecurityLevel.RESTRICTED)
    assert of("pod security", facts).level is Level.OK


@pytest.mark.parametrize("feature", FEATURES, ids=lambda feature: feature.name)
def test_without_its_rights_each_feature_says_what_is_lost(feature: Any) -> None:
    for right in feature.rights:
        facts = replace(
            place(rights=PLACE.rights - {right}), cluster_rights=WELL.cluster_rights - {right}
        )
        finding = of(f"rights: {feature.name}", facts)
        assert finding.level is (Level.DEGRADED if feature.lost else Level.FAILED)
        assert right.verb in finding.message
        assert right.resource in finding.message
        assert finding.message.startswith(feature.lost or "not allowed")
        assert finding.remedy


def test_the_features_need_what_the_page_lists_and_nothing_else() -> None:
    listed = set()
    for page in ("Rights", "Rights of people"):
        for resource, verbs, *_ in table_of("operations.md", page):
            for name in re.findall("`([^`]+)`", resource):
                listed |= {(verb, name) for verb in verbs.split(", ")}
    assert {(right.verb, right.resource) for f in FEATURES for right in f.rights} == listed


RULES = [
    {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods", "pods/log"]},
    {"verbs": ["*"], "apiGroups": ["coordination.k8s.io"], "resources": ["*"]},
    {"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["one"]},
]


@pytest.mark.parametrize(
    ("right", "is_granted"),
    [
        (Right("list", "pods"), True),
        (Right("get", "pods/log"), True),
        (Right("delete", "pods"), False),
        (Right("update", "leases", "coordination.k8s.io"), True),
        (Right("list", "leases"), False),
        (Right("get", "secrets"), False),
    ],
)
def test_a_rule_grants_its_verbs_on_its_resources_of_any_name(
    right: Right, is_granted: bool
) -> None:
    assert granted(RULES, right) is is_granted


def test_an_administrators_rules_grant_everything() -> None:
    everything = [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]
    for right in (*needed(in_cluster=False), *needed(in_cluster=True)):
        assert granted(everything, right)
    for resources, resource in ((["*/log"], "pods/log"), (["pods"], "pods")):
        rules = [{"verbs": ["*"], "apiGroups": ["*"], "resources": resources}]
        assert granted(rules, Right("get", resource))
        assert not granted(rules, Right("get", "secrets"))
