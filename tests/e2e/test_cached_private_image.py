"""A private image that the node has, and a registry that is down: whoever may pull it may run it.

Since 1.35 the kubelet remembers with which credentials an image was pulled.
"""

from typing import Any

import pytest

from tests.cluster.images import Images
from tests.cluster.registry import Registry
from tests.support.engine import Engine
from tests.support.objects import Objects

pytestmark = [pytest.mark.only("real"), pytest.mark.since(1, 35), pytest.mark.alone]

POLICIES = ["Always", "IfNotPresent"]


@pytest.fixture
def cached(engine: Engine, images: Images, private_registry: Registry) -> str:
    """An image that the node has pulled with the right password, of a registry that is down."""
    ref = images.build(registry="private")
    right = credentials(private_registry, str(private_registry.password))
    engine.spec("first", image=ref, registryCredentials=right, pullPolicy="Always", script="true")
    engine.reconcile(ends=0)
    private_registry.stop()
    return ref


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
    run = engine.reconcile(ends=4)
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
