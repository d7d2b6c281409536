"""A private image that the node has, and a registry that is down: the login that pulled it runs it.

Since 1.35 the kubelet remembers with which credentials an image was pulled.
"""

import base64
from typing import Any

import pytest

from tests.cluster.images import Images
from tests.cluster.registry import Registry
from tests.support.api import Api
from tests.support.engine import Engine
from tests.support.objects import Objects

pytestmark = [pytest.mark.only("real"), pytest.mark.since(1, 35), pytest.mark.alone]

POLICIES = ["Always", "IfNotPresent"]
HELP = "use a Secret that stays (registryCredentials with fromSecret)"


def impatient(engine: Engine) -> tuple[str, str]:
    head = "apiVersion: jobs.engine/v1alpha1\nkind: EngineConfig\n"
    return "--config", str(engine.write("../engine.yaml", f"{head}pull: {{patience: 3s}}\n"))


def lists(api: Api, image: str) -> bool:
    """Whether a node's status names the image: within a minute of its pull."""
    status = [node["status"] for node in api.list("nodes")]
    return any(image in one["names"] for each in status for one in each.get("images") or ())


@pytest.fixture
def cached(engine: Engine, images: Images, private_registry: Registry) -> str:
    """An image that the node has pulled with the right password, of a registry that is down."""
    ref = images.build(registry="private")
    right = credentials(private_registry, str(private_registry.password))
    engine.spec("first", image=ref, registryCredentials=right, pullPolicy="Always", script="true")
    engine.reconcile(ends=0)
    private_registry.stop()
    return ref


@pytest.mark.timeout(300)
def test_a_password_that_rotated_in_the_spec_is_refused_and_the_failure_says_why(
    engine: Engine, objects: Objects, cached: str, private_registry: Registry
) -> None:
    objects.api.wait(lambda: lists(objects.api, cached), "image in the node's status", timeout=150)
    rotated = credentials(private_registry, "the-password-of-tomorrow")
    for name, policies in (("list", POLICIES), ("never", "Never")):
        engine.spec(
            name, image=cached, registryCredentials=rotated, pullPolicy=policies, script="true"
        )
    run = engine.reconcile(*impatient(engine), ends=4)
    message = run.job("list")["message"]
    assert "connection refused; node " in message
    assert HELP in message
    message = run.job("never")["message"]
    assert "is not present with pull policy of Never; node " in message
    assert HELP in message


@pytest.mark.parametrize("way", ["fromSecret", "service account"])
def test_a_secret_that_stays_runs_it_after_its_password_has_rotated(
    engine: Engine, objects: Objects, images: Images, private_registry: Registry, way: str
) -> None:
    api, namespace = objects.api, objects.namespace
    ref, given = images.build(registry="private"), dict[str, Any]()
    api.create("secrets", login(private_registry.docker_config()), namespace)
    if way == "fromSecret":
        given["registryCredentials"] = [{"fromSecret": {"name": "login"}}]
    else:
        use = {"imagePullSecrets": [{"name": "login"}]}
        api.wait(lambda: api.find("serviceaccounts", "default", namespace), "the account")
        api.patch("serviceaccounts", "default", use, namespace)
    engine.spec("first", image=ref, pullPolicy="Always", script="true", **given)
    engine.reconcile(ends=0)
    private_registry.stop()
    rotated = private_registry.docker_config().replace(str(private_registry.password), "tomorrow")
    api.patch("secrets", "login", {"data": login(rotated)["data"]}, namespace)
    engine.spec("second", image=ref, pullPolicy=POLICIES, script="echo ran", **given)
    run = engine.reconcile(ends=0)
    assert [one["outcome"] for one in run.job("second")["attempts"]] == [
        "ImagePullFailed",
        "Succeeded",
    ]
    assert objects.log("second") == "ran\n"


@pytest.mark.parametrize("policy", ["Never", "IfNotPresent"])
def test_the_same_password_in_another_secret_runs_it_without_a_registry(
    engine: Engine, objects: Objects, cached: str, private_registry: Registry, policy: str
) -> None:
    right = credentials(private_registry, str(private_registry.password))
    engine.spec(
        "second", image=cached, registryCredentials=right, pullPolicy=policy, script="echo ran"
    )
    run = engine.reconcile(ends=0)
    assert len(run.job("second")["attempts"]) == 1
    assert objects.log("second") == "ran\n"


def login(config: str) -> dict[str, Any]:
    data = {".dockerconfigjson": base64.b64encode(config.encode()).decode()}
    return {"metadata": {"name": "login"}, "type": "kubernetes.io/dockerconfigjson", "data": data}


def test_the_right_credentials_run_it_from_the_nodes_cache(
    engine: Engine, objects: Objects, cached: str, private_registry: Registry
) -> None:
    right = credentials(private_registry, str(private_registry.password))
    engine.spec(
        "allowed", image=cached, registryCredentials=right, pullPolicy=POLICIES, script="echo ran"
    )
    run = engine.reconcile(ends=0)
    first, second = run.job("allowed")["attempts"]
    assert (first["outcome"], first["class"]) == ("ImagePullFailed", "transient")
    assert "connection refused" in first["message"]
    assert (second["outcome"], second["pullPolicies"]) == ("Succeeded", {"main": "IfNotPresent"})
    assert objects.log("allowed") == "ran\n"


@pytest.mark.parametrize("password", ["a-wrong-password", None])
def test_wrong_credentials_or_none_do_not_run_it_and_are_told_why(
    engine: Engine,
    objects: Objects,
    cached: str,
    private_registry: Registry,
    password: str | None,
) -> None:
    given: dict[str, Any] = {}
    if password is not None:
        given["registryCredentials"] = credentials(private_registry, password)
    engine.spec("refused", image=cached, pullPolicy=POLICIES, script="echo ran", **given)
    run = engine.reconcile(*impatient(engine), ends=4)
    job = run.job("refused")
    assert job["reason"] == "ImagePullFailed"
    assert [attempt["outcome"] for attempt in job["attempts"]] == ["ImagePullFailed"] * 2
    assert "connection refused" in job["attempts"][0]["message"]
    assert cached in job["attempts"][1]["message"]
    assert objects.api.list("pods", objects.namespace, labels="jobs.engine/job=refused") == []
    assert "a-wrong-password" not in run.stdout + run.stderr


def credentials(registry: Registry, password: str) -> list[dict[str, Any]]:
    account = {"registry": registry.host, "username": registry.username}
    return [{**account, "password": {"value": password}}]


def test_for_wrong_credentials_and_never_the_image_is_not_present(
    engine: Engine, cached: str, private_registry: Registry
) -> None:
    wrong = credentials(private_registry, "a-wrong-password")
    engine.spec(
        "refused", image=cached, registryCredentials=wrong, pullPolicy="Never", script="true"
    )
    run = engine.reconcile(ends=4)
    (attempt,) = run.job("refused")["attempts"]
    assert attempt["outcome"] == "ImagePullFailed"
    assert f'"{cached}" is not present with pull policy of Never' in attempt["message"]
