"""Images: what the node has, what the registries hold, and the kubelet's reasons in their order."""

from __future__ import annotations

import pytest

from engine.sandbox import Sandbox
from tests.support.sandbox_namespace import Namespace, container

IMAGE = "registry.example/tool:1"


def test_a_missing_image_is_told_again_with_the_back_off(ci: Namespace, sandbox: Sandbox) -> None:
    sandbox.images.missing(IMAGE)
    ci.start()
    ci.advance(0.05)
    cause = (
        f'rpc error: code = NotFound desc = failed to pull and unpack image "{IMAGE}": failed '
        f'to resolve reference "{IMAGE}": {IMAGE}: not found'
    )
    assert ci.waiting() == ("ErrImagePull", cause)
    ci.advance(1)
    back_off = f'Back-off pulling image "{IMAGE}": ErrImagePull: {cause}'
    assert ci.waiting() == ("ImagePullBackOff", back_off)
    assert ci.reasons() == ["Scheduled", "Pulling", "Failed", "Failed", "BackOff", "Failed"]
    ci.advance(10.05)
    assert ci.waiting()[0] == "ErrImagePull"
    assert ci.phase() == "Pending"


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("refused", "dial tcp 192.0.2.10:443: connect: connection refused"),
        ("timeout", "i/o timeout"),
        ("no-such-host", "lookup registry.example on 10.96.0.10:53: no such host"),
        ("tls", "TLS handshake timeout"),
        ("503", "503 Service Unavailable"),
    ],
)
def test_a_registry_that_is_down(ci: Namespace, sandbox: Sandbox, how: str, words: str) -> None:
    sandbox.images.down("registry.example", how)
    ci.start()
    ci.advance(0.05)
    reason, message = ci.waiting()
    assert reason == "ErrImagePull"
    assert words in message


def test_a_registry_that_comes_back_lets_the_pod_start(ci: Namespace, sandbox: Sandbox) -> None:
    sandbox.images.down("registry.example")
    ci.start()
    ci.advance(5)
    sandbox.images.up("registry.example")
    ci.advance(10)
    assert ci.phase() == "Succeeded"


def test_a_cached_image_survives_an_outage_unless_it_is_always_pulled(
    ci: Namespace, sandbox: Sandbox
) -> None:
    sandbox.images.cache(IMAGE)
    sandbox.images.down("registry.example")
    ci.start("lazy", containers=[container(imagePullPolicy="IfNotPresent")])
    ci.start("never", containers=[container(imagePullPolicy="Never")])
    ci.start("always", containers=[container(imagePullPolicy="Always")])
    ci.advance(1)
    assert (ci.phase("lazy"), ci.phase("never"), ci.phase("always")) == (
        "Succeeded",
        "Succeeded",
        "Pending",
    )
    assert "Pulling" not in ci.reasons("lazy")


def test_a_pulled_image_stays_on_the_node(ci: Namespace, sandbox: Sandbox) -> None:
    ci.start("first")
    ci.advance(1)
    sandbox.images.down("registry.example")
    ci.start("second")
    ci.advance(1)
    assert ci.phase("second") == "Succeeded"
    assert sandbox.images.pulls == [IMAGE]


def test_a_registry_holds_only_what_it_is_said_to_hold(ci: Namespace, sandbox: Sandbox) -> None:
    sandbox.images.registry("registry.example", images=["tool:1", "team/*"])
    ci.start("one")
    ci.start("two", containers=[container(image="registry.example/tool:2")])
    ci.start("three", containers=[container(image="registry.example/team/x:9")])
    ci.advance(1)
    assert [ci.phase(name) for name in ("one", "two", "three")] == [
        "Succeeded",
        "Pending",
        "Succeeded",
    ]


def test_a_password_is_wanted_and_honoured(ci: Namespace, sandbox: Sandbox) -> None:
    sandbox.images.registry("registry.example", users={"ci": "right"})
    ci.login("good", "registry.example", "ci", "right")
    ci.login("bad", "https://registry.example/v2/", "ci", "wrong")
    ci.start("anonymous")
    ci.start("wrong", imagePullSecrets=[{"name": "bad"}])
    ci.start("absent", imagePullSecrets=[{"name": "not-there"}])
    ci.advance(0.05)
    reason, message = ci.waiting(name="wrong")
    assert reason == "ErrImagePull"
    assert message.endswith(
        "unexpected status from HEAD request to https://registry.example/v2/tool/manifests/1: "
        "401 Unauthorized"
    )
    for name in ("anonymous", "absent"):
        reason, message = ci.waiting(name=name)
        assert reason == "ErrImagePull"
        assert (
            "pull access denied, repository does not exist or may require authorization" in message
        )
    assert "FailedToRetrieveImagePullSecret" in ci.reasons("absent")
    sandbox.images.forget(IMAGE)
    ci.start("right", imagePullSecrets=[{"name": "good"}])
    ci.advance(1)
    assert ci.phase("right") == "Succeeded"


def test_a_new_pod_pulls_at_once_whatever_the_last_one_met(ci: Namespace, sandbox: Sandbox) -> None:
    sandbox.images.down("registry.example")
    ci.start("first")
    ci.advance(100)
    sandbox.images.up("registry.example")
    ci.start("second")
    ci.advance(1)
    assert ci.phase("second") == "Succeeded"


def test_one_failing_container_does_not_hold_the_others_back(
    ci: Namespace, sandbox: Sandbox
) -> None:
    sandbox.images.missing("broken:1")
    ci.start(containers=[container("bad", "broken:1"), container("good")])
    ci.advance(1)
    assert ci.waiting("bad")[0] == "ErrImagePull"
    assert ci.state("good")["terminated"]["exitCode"] == 0
    assert ci.phase() == "Running"


@pytest.mark.parametrize(
    ("image", "full"),
    [
        ("alpine", "docker.io/library/alpine:latest"),
        ("team/tool:2", "docker.io/team/tool:2"),
        ("localhost/tool", "localhost/tool:latest"),
        ("host:5000/a/b:1", "host:5000/a/b:1"),
    ],
)
def test_short_names_mean_what_docker_means(
    ci: Namespace, sandbox: Sandbox, image: str, full: str
) -> None:
    sandbox.images.missing(full)
    ci.start(containers=[container(image=image)])
    ci.advance(0.05)
    assert f'failed to resolve reference "{full}"' in ci.waiting()[1]


@pytest.mark.parametrize("policy", ["IfNotPresent", "Never"])
def test_a_private_image_of_the_node_is_for_the_login_that_pulled_it(
    ci: Namespace, sandbox: Sandbox, policy: str
) -> None:
    """By the Secret's UID or by its content, as the kubelet has it since 1.35."""
    sandbox.images.registry("registry.example", users={"ci": "right"})
    for name, password in (("one", "right"), ("equal", "right"), ("other", "rotated")):
        ci.login(name, "registry.example", "ci", password)
    ci.start("first", imagePullSecrets=[{"name": "one"}])
    ci.advance(2)
    sandbox.images.down("registry.example")
    cached = [container(imagePullPolicy=policy)]
    for name in ("one", "equal", "other"):
        ci.start(f"by-{name}", imagePullSecrets=[{"name": name}], containers=cached)
    ci.start("by-none", containers=cached)
    ci.advance(2)
    assert [ci.phase(f"by-{name}") for name in ("one", "equal", "other", "none")] == [
        "Succeeded",
        "Succeeded",
        "Pending",
        "Pending",
    ]
