"""The doctor's checks: OK, degraded with what is lost, or failed with what to do."""

import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

import pytest

from engine.inspect.doctor import (
    FEATURES,
    CheckStatus,
    Feature,
    check_version,
    feature_result,
    read_full,
    read_protection,
    read_user_namespaces,
)
from tests.support.pages import table_of

EVERY_RIGHT = {right for feature in FEATURES for right in feature.rights}


def quota(hard: dict[str, str], used: dict[str, str], **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "q"}, "status": {"hard": hard, "used": used}, "spec": spec}


@pytest.mark.parametrize(
    ("answer", "status", "words", "remedy"),
    [
        ({"major": "1", "minor": "36"}, CheckStatus.OK, "Kubernetes 1.36", ""),
        ({"major": "1", "minor": "29"}, CheckStatus.FAILED, "1.29, older than 1.30", "upgrade"),
        ({}, CheckStatus.FAILED, "does not say", "an API server?"),
    ],
)
def test_a_server_that_is_too_old_or_says_no_version_fails(
    answer: Mapping[str, Any], status: CheckStatus, words: str, remedy: str
) -> None:
    result = check_version(answer)
    assert result.status is status
    assert words in result.message
    assert remedy in result.remedy
    assert bool(result.remedy) is bool(remedy)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (quota({"pods": "10"}, {"pods": "10"}), "pods 10 of 10"),
        (quota({"pods": "10"}, {"pods": "2"}), ""),
        (quota({"pods": "1", "cpu": "2"}, {"pods": "1", "cpu": "2000m"}), "cpu 2000m of 2, pods 1"),
        (quota({"limits.memory": "1Gi"}, {"limits.memory": "1024Mi"}), "limits.memory 1024Mi of"),
        (quota({"requests.cpu": "2"}, {"requests.cpu": "500m"}), ""),
        (quota({"services": "1"}, {"services": "1"}), ""),
        (quota({"pods": "1"}, {"pods": "1"}, scopes=["Terminating"]), "pods 1 of 1"),
        (quota({"pods": "1"}, {"pods": "1"}, scopes=["NotTerminating"]), ""),
        (quota({"pods": "1"}, {"pods": "1"}, scopes=["BestEffort"]), ""),
        (quota({"pods": "1"}, {"pods": "1"}, scopeSelector={"matchExpressions": []}), ""),
    ],
)
def test_a_quota_is_full_when_what_jobs_need_of_it_is_used_up(
    found: dict[str, Any], words: str
) -> None:
    assert read_full(found).startswith(words)
    assert bool(read_full(found)) is bool(words)


def allowing(rights: Collection[tuple[str, str]]) -> Callable[[str, str], bool]:
    return lambda verb, kind: (verb, kind) in rights


@pytest.mark.parametrize("feature", FEATURES, ids=lambda feature: feature.name)
def test_without_its_rights_each_feature_says_what_is_lost(feature: Feature) -> None:
    for right in feature.rights:
        result = feature_result(feature, allowing(EVERY_RIGHT - {right}))
        assert result.check == f"rights: {feature.name}"
        assert result.status is (CheckStatus.DEGRADED if feature.lost else CheckStatus.FAILED)
        assert all(word in result.message for word in right)
        assert result.message.startswith(feature.lost or "not allowed")
        assert result.remedy
    whole = feature_result(feature, allowing(EVERY_RIGHT))
    assert (whole.status, whole.message, whole.remedy) == (CheckStatus.OK, "granted", "")


def test_the_features_need_what_the_page_lists_and_nothing_else() -> None:
    listed = set()
    for page in ("Rights", "Rights of people"):
        for resource, verbs, *_ in table_of("operations.md", page):
            for name in re.findall("`([^`]+)`", resource):
                listed |= {(verb, name) for verb in verbs.split(", ")}
    assert {(verb, kind.partition(".")[0]) for verb, kind in EVERY_RIGHT} == listed


def test_a_namespace_without_the_budget_that_refuses_evictions_is_told_how_it_is_made() -> None:
    spec = {
        "minAvailable": 2**31 - 1,
        "selector": {"matchLabels": {"jobs.engine/disruption": "protect"}},
    }
    ours = {"metadata": {"name": "engine-protect"}, "spec": spec}
    weak = {"metadata": {"name": "weak"}, "spec": {**spec, "minAvailable": 1}}
    (found,) = read_protection([weak, ours], "ci")
    assert found.status is CheckStatus.OK
    (missing,) = read_protection([weak], "ci")
    assert missing.status is CheckStatus.DEGRADED
    assert missing.remedy == (
        "kubectl create poddisruptionbudget engine-protect -n ci"
        " --selector=jobs.engine/disruption=protect --min-available=2147483647"
    )


def test_nodes_without_user_namespaces_are_named() -> None:
    def node(name: str, *handlers: dict[str, Any]) -> dict[str, Any]:
        return {"metadata": {"name": name}, "status": {"runtimeHandlers": handlers}}

    able = {"name": "", "features": {"userNamespaces": True}}
    other = {"name": "kata", "features": {"userNamespaces": True}}
    (found,) = read_user_namespaces([node("a", able), node("b", other, able)], "")
    assert found.status is CheckStatus.OK
    (found,) = read_user_namespaces([node("a", able), node("b", other), node("c")], "")
    assert found.status is CheckStatus.DEGRADED
    assert found.message == "not on b, c: root in a job is root there"
