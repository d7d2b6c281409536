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
HELP = "Use a Secret that stays (registryCredentials with fromSecret)"


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


@pytest.mark.timeout(400)
def test_another_login_than_that_which_pulled_it_is_refused_and_the_failure_says_why(
    engine: Engine, objects: Objects, cached: str, private_registry: Registry
) -> None:
    """A password that has rotated in the spec, a wrong one, or none."""
    objects.api.wait(lambda: lists(objects.api, cached), "image in the node's status", timeout=150)
    rotated = credentials(private_registry, "the-password-of-tomorrow")
    for name, policies, logins in (
        ("list", POLICIES, rotated),
        ("never", "Never", rotated),
        ("wrong", POLICIES, credentials(private_registry, "a-wrong-password")),
        ("none", POLICIES, []),
    ):
        engine.spec(
            name, image=cached, registryCredentials=logins, pullPolicy=policies, script="echo ran"
        )
    run = engine.reconcile(*impatient(engine), ends=4)
    for name, words, attempts in (
        ("list", "connection refused", 2),
        ("wrong", "connection refused", 2),
        ("none", "connection refused", 2),
        ("never", f'"{cached}" is not present with pull policy of Never', 1),
    ):
        job = run.job(name)
        assert job["reason"] == "ImagePullFailed"
        assert [one["outcome"] for one in job["attempts"]] == ["ImagePullFailed"] * attempts
        assert words in job["attempts"][0]["message"], job
        assert "; node " in job["message"], job
        assert HELP in job["message"], job
        assert objects.api.list("pods", objects.namespace, labels=f"jobs.engine/job={name}") == []
    assert "a-wrong-password" not in run.stdout + run.stderr


@pytest.mark.timeout(400)
def test_the_login_that_pulled_it_runs_it_and_so_does_a_secret_that_stays_and_has_rotated(
    engine: Engine, objects: Objects, images: Images, private_registry: Registry
) -> None:
    """The same password in another Secret, with each policy; fromSecret; the service account's."""
    api, namespace = objects.api, objects.namespace
    ref, right = images.build(registry="private"), str(private_registry.password)
    api.create("secrets", login(private_registry.docker_config()), namespace)
    api.create("serviceaccounts", {"metadata": {"name": "puller"}}, namespace)
    use = {"imagePullSecrets": [{"name": "login"}]}
    api.patch("serviceaccounts", "puller", use, namespace)
    inline: dict[str, Any] = {"registryCredentials": credentials(private_registry, right)}
    ways: dict[str, dict[str, Any]] = {
        "same": inline,
        "secret": {"registryCredentials": [{"fromSecret": {"name": "login"}}]},
        "account": {"serviceAccountName": "puller"},
    }
    for name, given in ways.items():
        engine.spec(f"{name}-first", image=ref, pullPolicy="Always", script="true", **given)
    engine.reconcile(ends=0)
    private_registry.stop()
    rotated = private_registry.docker_config().replace(right, "tomorrow")
    api.patch("secrets", "login", {"data": login(rotated)["data"]}, namespace)
    for name, given in ways.items():
        engine.spec(name, image=ref, pullPolicy=POLICIES, script="echo ran", **given)
    for policy in ("Never", "IfNotPresent"):
        name = f"same-{policy.lower()}"
        engine.spec(name, image=ref, pullPolicy=policy, script="echo ran", **inline)
    run = engine.reconcile(ends=0)
    for name in ways:
        first, second = run.job(name)["attempts"]
        assert (first["outcome"], first["class"]) == ("ImagePullFailed", "transient")
        assert "connection refused" in first["message"]
        assert (second["outcome"], second["pullPolicies"]) == (
            "Succeeded", {"main": "IfNotPresent"},
        )  # fmt: skip
        assert objects.log(name) == "ran\n"
    for name in ("same-never", "same-ifnotpresent"):
        assert len(run.job(name)["attempts"]) == 1
        assert objects.log(name) == "ran\n"


def login(config: str) -> dict[str, Any]:
    data = {".dockerconfigjson": base64.b64encode(config.encode()).decode()}
    return {"metadata": {"name": "login"}, "type": "kubernetes.io/dockerconfigjson", "data": data}


def credentials(registry: Registry, password: str) -> list[dict[str, Any]]:
    account = {"registry": registry.host, "username": registry.username}
    return [{**account, "password": {"value": password}}]
