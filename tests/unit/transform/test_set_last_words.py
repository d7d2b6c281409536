from engine.transform.set_last_words import set_last_words
from tests.unit.builders import context, make_config, make_job, pod_manifest
from tests.unit.transform.support import apply

POLICY = "terminationMessagePolicy"


def test_every_container_that_has_no_policy_of_its_own_leaves_its_last_words() -> None:
    own = {"name": "own", "image": "x", POLICY: "File"}
    manifest = pod_manifest(initContainers=[{"name": "init", "image": "x"}, own])
    pod = apply(set_last_words, manifest, context(make_job()))
    containers = [*pod["spec"]["initContainers"], *pod["spec"]["containers"]]
    policies = {one["name"]: one[POLICY] for one in containers}
    assert policies.pop("own") == "File"
    assert set(policies.values()) == {"FallbackToLogsOnError"}


def test_without_the_feature_no_container_has_a_policy() -> None:
    config = make_config("features: {lastWords: false}")
    manifest = pod_manifest()
    assert apply(set_last_words, manifest, context(make_job(config=config))) == manifest
