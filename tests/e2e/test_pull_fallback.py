"""Every container finds its own way through its own pull policies, and the registry is quoted."""

from dataclasses import replace
from typing import Any

import pytest

from tests.cluster.images import Images
from tests.cluster.node import Node
from tests.cluster.registry import Registry
from tests.support.api import Api
from tests.support.engine import CommandResult, Engine
from tests.support.objects import Objects

pytestmark = pytest.mark.only("real")


def only_on_the_node(images: Images) -> str:
    ref = images.build()
    images.pull_to_node(ref)
    images.drop_from_registry(ref)
    return ref


def policies(run: CommandResult, job: str, container: str = "main") -> list[str]:
    return [attempt["pullPolicies"][container] for attempt in run.job(job)["attempts"]]


def outcomes(run: CommandResult, job: str) -> list[str]:
    return [attempt["outcome"] for attempt in run.job(job)["attempts"]]


def test_an_image_that_only_the_node_has_is_found_by_the_next_policy(
    engine: Engine, objects: Objects, images: Images
) -> None:
    ref = only_on_the_node(images)
    engine.spec("cached", image=ref, pullPolicy=["Always", "IfNotPresent"], script="echo ran")
    run = engine.reconcile(ends=0)
    assert policies(run, "cached") == ["Always", "IfNotPresent"]
    assert outcomes(run, "cached") == ["ImagePullFailed", "Succeeded"]
    first = run.job("cached")["attempts"][0]
    assert first["class"] == "notFound"
    assert ref in first["message"]
    assert "not found" in first["message"]
    assert "Back-off" not in first["message"]
    assert objects.log("cached") == "ran\n"
    assert objects.pod("cached")["spec"]["containers"][0]["imagePullPolicy"] == "IfNotPresent"


def test_the_fallback_is_told_on_stderr_and_in_an_event(
    engine: Engine, objects: Objects, images: Images
) -> None:
    ref = only_on_the_node(images)
    engine.spec("cached", image=ref, pullPolicy=["Always", "IfNotPresent"], script="true")
    run = engine.reconcile()
    told = [line for line in run.stderr.splitlines() if "pull policy Always failed" in line]
    assert len(told) == 1
    assert "attempt 1, main: " in told[0]
    assert "next is IfNotPresent" in told[0]
    events = [
        event
        for event in objects.api.list("events", objects.namespace)
        if event["reason"] == "PullPolicyFallback"
    ]
    assert [event["involvedObject"]["kind"] for event in events] == ["Pod"]
    assert "next is IfNotPresent" in events[0]["message"]


@pytest.mark.alone
def test_a_registry_that_is_down_stops_nobody_whose_image_is_on_the_node(
    engine: Engine, images: Images, registry: Registry
) -> None:
    ref = images.build()
    images.pull_to_node(ref)
    registry.stop()
    engine.spec("offline", image=ref, pullPolicy=["Always", "IfNotPresent"], script="true")
    run = engine.reconcile(ends=0)
    first = run.job("offline")["attempts"][0]
    assert (first["outcome"], first["class"]) == ("ImagePullFailed", "transient")
    assert "connection refused" in first["message"]


def run_on(api: Api, namespace: str, node: Node, image: str, share: float) -> None:
    """A pod that runs on the node, and asks for this share of its processors.

    A node that has run none needs a registry for its first one.
    """
    processors = int(api.get("nodes", node.name)["status"]["allocatable"]["cpu"])
    container = {
        "name": "main",
        "image": image,
        "command": ["sleep", "600"],
        "resources": {"requests": {"cpu": f"{processors * share * 1000:.0f}m"}},
    }
    there = {"kubernetes.io/hostname": node.name}
    spec = {"nodeSelector": there, "containers": [container]}
    api.create("pods", {"metadata": {"name": node.name}, "spec": spec}, namespace)
    api.wait(
        lambda: api.get("pods", node.name, namespace)["status"]["phase"] == "Running",
        f"running pod on {node.name}",
    )


def tells_of(api: Api, node: Node, image: str) -> bool:
    told = api.get("nodes", node.name)["status"].get("images") or ()
    return any(image in one["names"] for one in told)


@pytest.mark.alone
@pytest.mark.timeout(300)
def test_a_job_runs_on_the_node_that_has_its_image_though_another_is_freer(
    engine: Engine, objects: Objects, images: Images, registry: Registry, second_node: Node
) -> None:
    api, ref = objects.api, images.build()
    replace(images, node=second_node).pull_to_node(ref)
    run_on(api, objects.namespace, images.node, engine.image, 0.1)
    run_on(api, objects.namespace, second_node, engine.image, 0.8)
    api.wait(lambda: tells_of(api, second_node, ref), "image in the node's status", timeout=90)
    assert not images.on_node(ref)
    registry.stop()
    for name in ("one", "two", "three"):
        engine.spec(name, image=ref, pullPolicy=["Always", "IfNotPresent"], script="echo ran")
    run = engine.reconcile(ends=0)
    for name in ("one", "two", "three"):
        assert outcomes(run, name) == ["ImagePullFailed", "Succeeded"]
        assert objects.pod(name)["spec"]["nodeName"] == second_node.name


def test_no_policy_left_ends_with_every_attempt_listed(
    engine: Engine, objects: Objects, images: Images
) -> None:
    engine.spec("absent", image=images.absent(), pullPolicy="IfNotPresent", script="true")
    engine.spec("twice", image=images.absent(), pullPolicy=["Always", "Always"], script="true")
    run = engine.reconcile(ends=4)
    assert outcomes(run, "absent") == ["ImagePullFailed"]
    assert outcomes(run, "twice") == ["ImagePullFailed", "ImagePullFailed"]
    message = run.job("twice")["message"]
    assert "attempt 1, main, Always: " in message
    assert "attempt 2, main, Always: " in message
    assert objects.pods() == []
    objects.wait_until_clean()


def test_never_falls_through_to_the_next_policy(engine: Engine, images: Images) -> None:
    ref = images.build()
    images.drop_from_node(ref)
    engine.spec("never", image=ref, pullPolicy=["Never", "Always"], script="true")
    run = engine.reconcile(ends=0)
    assert policies(run, "never") == ["Never", "Always"]
    assert "Never" in run.job("never")["attempts"][0]["message"]


def test_only_the_cursor_of_the_failing_container_moves(engine: Engine, images: Images) -> None:
    cached = only_on_the_node(images)
    both = ["Always", "IfNotPresent"]
    services = [
        {
            "name": "good",
            "image": engine.image,
            "pullPolicy": both,
            "command": ["sh", "-c", "trap 'exit 0' TERM; while :; do sleep 0.2; done"],
        }
    ]
    engine.spec("one", image=cached, pullPolicy=both, services=services, script="true")
    run = engine.reconcile(ends=0)
    assert policies(run, "one") == ["Always", "IfNotPresent"]
    assert policies(run, "one", "good") == ["Always", "Always"]


def test_an_init_container_and_a_service_fall_back_too(engine: Engine, images: Images) -> None:
    both = ["Always", "IfNotPresent"]
    service: dict[str, Any] = {
        "name": "helper",
        "image": only_on_the_node(images),
        "pullPolicy": both,
        "command": ["sh", "-c", "trap 'exit 0' TERM; while :; do sleep 0.2; done"],
    }
    init = {"name": "prepare", "image": only_on_the_node(images), "pullPolicy": both}
    init["script"] = "true"
    engine.spec("inits", initContainers=[init], script="true")
    engine.spec("serves", services=[service], script="sleep 2")
    run = engine.reconcile(ends=0)
    assert policies(run, "inits", "prepare") == both
    assert policies(run, "serves", "helper") == both


def test_an_image_name_that_is_none_is_not_tried_again(engine: Engine, objects: Objects) -> None:
    engine.spec("typo", image="Not/A:Valid:Name", pullPolicy=["Always", "Never"], script="true")
    run = engine.reconcile(ends=4)
    job = run.job("typo")
    assert job["reason"] == "InvalidImage"
    assert outcomes(run, "typo") == ["InvalidImage"]
    assert "Not/A:Valid:Name" in job["message"]
    assert objects.pods() == []


def test_an_operator_can_keep_a_class_of_failures_from_falling_back(
    engine: Engine, images: Images
) -> None:
    config = engine.write(
        "../engine.yaml",
        "apiVersion: jobs.engine/v1alpha1\nkind: EngineConfig\npull: {fallbackOn: [transient]}\n",
    )
    ref = only_on_the_node(images)
    engine.spec("strict", image=ref, pullPolicy=["Always", "IfNotPresent"], script="true")
    run = engine.reconcile("--config", str(config), ends=4)
    assert outcomes(run, "strict") == ["ImagePullFailed"]


def test_a_registry_with_a_password_is_opened_by_the_right_credentials(
    engine: Engine, objects: Objects, images: Images, private_registry: Registry
) -> None:
    ref = images.build(registry="private")
    engine.environment["ENGINE_SECRET_PASSWORD"] = str(private_registry.password)
    credentials = [
        {
            "registry": private_registry.host,
            "username": private_registry.username,
            "password": {"fromEnv": "ENGINE_SECRET_PASSWORD"},
        }
    ]
    engine.spec("allowed", image=ref, registryCredentials=credentials, script="echo in")
    run = engine.reconcile(ends=0)
    assert objects.log("allowed") == "in\n"
    assert str(private_registry.password) not in run.stdout + run.stderr


def test_wrong_credentials_are_told_in_the_registrys_words(
    engine: Engine, objects: Objects, images: Images, private_registry: Registry
) -> None:
    ref = images.build(registry="private")
    credentials = [
        {
            "registry": private_registry.host,
            "username": private_registry.username,
            "password": {"value": "a-wrong-password"},
        }
    ]
    engine.spec("refused", image=ref, registryCredentials=credentials, script="true")
    run = engine.reconcile(ends=4)
    last = run.job("refused")["attempts"][-1]
    assert last["class"] == "unauthorized"
    assert "a-wrong-password" not in run.stdout + run.stderr
    objects.wait_until_clean()
