"""Denials, reviews, and who is asking."""

from __future__ import annotations

from engine.sandbox import Sandbox
from tests.support.http import Reply
from tests.support.sandbox_namespace import Namespace

REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


def review(ci: Namespace, **attributes: str) -> bool:
    body = {"spec": {"resourceAttributes": attributes}}
    return bool(ci.client.post(REVIEWS, body).body["status"]["allowed"])


def test_what_is_denied_is_forbidden_in_the_authorizers_words(
    ci: Namespace, sandbox: Sandbox
) -> None:
    sandbox.deny("create", "secrets", namespace="ci")
    got = ci.secret("x")
    assert (got.code, got.reason) == (403, "Forbidden")
    assert got.message == (
        'secrets is forbidden: User "sandbox-admin" cannot create resource "secrets" in API group '
        '"" in the namespace "ci"'
    )
    elsewhere = ci.client.post("/api/v1/namespaces/default/secrets", {"metadata": {"name": "x"}})
    assert elsewhere.code == 201


def test_a_named_object_and_a_cluster_wide_list_have_their_own_words(
    ci: Namespace, sandbox: Sandbox
) -> None:
    sandbox.deny("*", "pods")
    assert ci.client.get(ci.path("pods", "x")).message.startswith(
        'pods "x" is forbidden: User "sandbox-admin" cannot get resource "pods"'
    )
    assert ci.client.get("/api/v1/pods").message.endswith('in API group "" at the cluster scope')


def test_a_subresource_is_denied_by_its_own_name(ci: Namespace, sandbox: Sandbox) -> None:
    ci.start()
    ci.advance(1)
    sandbox.deny("get", "pods/log")
    got = ci.client.get(ci.path("pods", "job", "log"))
    assert got.code == 403
    assert 'cannot get resource "pods/log"' in got.message
    assert ci.phase() == "Succeeded"


def test_a_denial_can_be_taken_back(ci: Namespace, sandbox: Sandbox) -> None:
    denial = sandbox.deny("list", "pods")
    assert ci.client.get(ci.path("pods")).code == 403
    sandbox.allow(denial)
    assert ci.client.get(ci.path("pods")).code == 200


def test_a_denial_may_be_for_one_user(ci: Namespace, sandbox: Sandbox) -> None:
    sandbox.deny("list", "pods", user="alice")

    def ask(**headers: str) -> Reply:
        return ci.client.get(ci.path("pods"), headers=headers)

    assert ask(Authorization="Bearer alice").code == 403
    assert ask(**{"Impersonate-User": "alice"}).code == 403
    assert ask(Authorization="Bearer bob").code == 200
    assert 'User "alice" cannot list' in ask(Authorization="Bearer alice").message


def test_a_review_agrees_with_the_denials(ci: Namespace, sandbox: Sandbox) -> None:
    assert review(ci, verb="create", resource="pods", namespace="ci")
    sandbox.deny("create", "pods", namespace="ci")
    sandbox.deny("get", "pods/log")
    assert not review(ci, verb="create", resource="pods", namespace="ci")
    assert review(ci, verb="create", resource="pods", namespace="default")
    assert not review(ci, verb="get", resource="pods", subresource="log", namespace="ci")


def test_a_kubeconfig_names_its_user(ci: Namespace, sandbox: Sandbox) -> None:
    config = sandbox.kubeconfig(user="carol", namespace="ci")
    assert config["users"][0]["user"]["token"] == "carol"
    assert config["contexts"][0]["context"]["namespace"] == "ci"
    assert config["clusters"][0]["cluster"]["server"] == sandbox.url
