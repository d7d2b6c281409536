from engine.transform.set_pull_policy import set_pull_policy
from tests.unit.builders import context, other_manifest, pod_manifest
from tests.unit.transform.support import apply

INIT = [{"name": "prepare", "image": "a"}]
TWO = [{"name": "main", "image": "a"}, {"name": "redis", "image": "b"}]


def test_each_container_gets_its_own_policy() -> None:
    manifest = pod_manifest(initContainers=INIT, containers=TWO)
    policies = {"prepare": "Never", "main": "Always", "redis": "IfNotPresent"}
    spec = apply(set_pull_policy, manifest, context(policies=policies))["spec"]
    assert spec["initContainers"] == [{**INIT[0], "imagePullPolicy": "Never"}]
    assert [c["imagePullPolicy"] for c in spec["containers"]] == ["Always", "IfNotPresent"]


def test_a_container_without_a_list_is_left_to_the_cluster() -> None:
    manifest = pod_manifest(containers=TWO)
    spec = apply(set_pull_policy, manifest, context(policies={"redis": "Never"}))["spec"]
    assert spec["containers"][0] == TWO[0]


def test_the_attempts_policy_wins_over_the_templates() -> None:
    manifest = pod_manifest(containers=[{"name": "main", "imagePullPolicy": "Never"}])
    spec = apply(set_pull_policy, manifest, context(policies={"main": "Always"}))["spec"]
    assert spec["containers"][0]["imagePullPolicy"] == "Always"


def test_without_policies_nothing_changes() -> None:
    assert apply(set_pull_policy, pod_manifest(), context()) == pod_manifest()


def test_other_kinds_have_no_pull_policy() -> None:
    known = context(policies={"main": "Always"})
    assert apply(set_pull_policy, other_manifest(), known) == other_manifest()
