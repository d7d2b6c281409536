from engine.transform.set_pull_policy import set_pull_policy
from tests.unit.builders import context, pod_manifest
from tests.unit.transform.support import apply


def test_each_container_gets_its_own_policy_or_is_left_to_the_cluster() -> None:
    mains = [{"name": "main", "imagePullPolicy": "Never"}, {"name": "redis"}, {"name": "other"}]
    manifest = pod_manifest(initContainers=[{"name": "prepare"}], containers=mains)
    policies = {"prepare": "Never", "main": "Always", "redis": "IfNotPresent"}
    spec = apply(set_pull_policy, manifest, context(policies=policies))["spec"]
    found = {
        c["name"]: c.get("imagePullPolicy") for c in spec["initContainers"] + spec["containers"]
    }
    assert found == {**policies, "other": None}
