"""Service accounts: what a namespace and a pod get without asking."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.contract.conftest import Target
from tests.contract.objects import pod
from tests.support.client import MERGE, Obj, eventually

TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount"
ROOT = "kube-root-ca.crt"


@pytest.fixture
def fresh(target: Target) -> Iterator[Target]:
    """A namespace of the test's own."""
    name = f"account-{uuid.uuid4().hex[:8]}"
    target.client.post("/api/v1/namespaces", {"metadata": {"name": name}})
    yield replace(target, namespace=name)
    target.client.delete(f"/api/v1/namespaces/{name}")


def made(target: Target, name: str, **spec: object) -> Obj:
    got = target.client.post(target.path("pods"), pod(name, **spec), dryRun="All")
    assert got.code == 201, got.body
    found: Obj = got.body["spec"]
    return found


def test_a_namespace_gets_an_account_and_the_root_certificate(fresh: Target) -> None:
    eventually(lambda: fresh.client.get(fresh.path("serviceaccounts", "default")).code == 200)
    eventually(lambda: fresh.client.get(fresh.path("configmaps", ROOT)).code == 200)
    certificate = fresh.client.get(fresh.path("configmaps", ROOT)).body
    assert list(certificate["data"]) == ["ca.crt"]
    assert "kubernetes.io/description" in certificate["metadata"]["annotations"]


def test_what_a_namespace_got_comes_again_when_it_is_deleted(fresh: Target) -> None:
    for where in (fresh.path("serviceaccounts", "default"), fresh.path("configmaps", ROOT)):
        old = eventually(lambda where=where: found(fresh, where))  # type: ignore[misc]
        fresh.client.delete(where)
        eventually(lambda where=where, old=old: found(fresh, where) not in ("", old))  # type: ignore[misc]


def found(target: Target, where: str) -> str:
    got = target.client.get(where)
    return got.uid if got.code == 200 else ""


def test_the_root_certificate_stays_as_it_is(fresh: Target) -> None:
    where = fresh.path("configmaps", ROOT)
    eventually(lambda: fresh.client.get(where).code == 200)
    before = fresh.client.get(where).body["data"]
    fresh.client.patch(where, {"data": {"ca.crt": "another"}}, MERGE)
    eventually(lambda: fresh.client.get(where).body["data"] == before)


def test_the_root_certificate_counts_in_a_quota(fresh: Target) -> None:
    eventually(lambda: fresh.client.get(fresh.path("configmaps", ROOT)).code == 200)
    quota = {"metadata": {"name": "q"}, "spec": {"hard": {"configmaps": "5"}}}
    fresh.client.post(fresh.path("resourcequotas"), quota)
    where = fresh.path("resourcequotas", "q")
    counted = {"configmaps": "1"}
    eventually(lambda: fresh.client.get(where).body.get("status", {}).get("used") == counted)


def test_a_pod_that_comes_right_after_its_namespace_is_let_in(fresh: Target) -> None:
    got = fresh.client.post(fresh.path("pods"), pod("early"))
    assert (got.code, got.body["spec"]["serviceAccountName"]) == (201, "default")


def test_every_container_gets_the_token(target: Target, name: str) -> None:
    first = {"name": "first", "image": "x:1"}
    spec = made(target, name, initContainers=[first])
    (volume,) = spec["volumes"]
    assert volume["name"].startswith("kube-api-access-")
    assert volume["projected"] == {
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
            {"configMap": {"name": ROOT, "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {
                "downwardAPI": {
                    "items": [
                        {
                            "path": "namespace",
                            "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"},
                        }
                    ]
                }
            },
        ],
        "defaultMode": 420,
    }
    mount = {"name": volume["name"], "readOnly": True, "mountPath": TOKEN}
    for container in (*spec["initContainers"], *spec["containers"]):
        assert container["volumeMounts"] == [mount]
    assert spec["serviceAccount"] == "default"


def test_a_pod_that_wants_no_token_gets_none(target: Target, name: str) -> None:
    spec = made(target, name, automountServiceAccountToken=False)
    assert "volumes" not in spec
    assert "volumeMounts" not in spec["containers"][0]


def test_a_mount_of_its_own_at_the_tokens_place_is_left_alone(target: Target, name: str) -> None:
    mount = {"name": "own", "mountPath": TOKEN}
    main = {"name": "main", "image": "x:1", "volumeMounts": [mount]}
    spec = made(target, name, containers=[main], volumes=[{"name": "own", "emptyDir": {}}])
    assert [volume["name"] for volume in spec["volumes"]] == ["own"]
    assert spec["containers"][0]["volumeMounts"] == [mount]


def test_an_account_lends_its_pull_secrets_and_may_keep_its_token(
    target: Target, name: str
) -> None:
    account = {
        "metadata": {"name": name},
        "imagePullSecrets": [{"name": "login"}],
        "automountServiceAccountToken": False,
    }
    assert target.client.post(target.path("serviceaccounts"), account).code == 201
    spec = made(target, name, serviceAccountName=name)
    assert spec["imagePullSecrets"] == [{"name": "login"}]
    assert "volumes" not in spec
    spec = made(target, name, serviceAccountName=name, imagePullSecrets=[{"name": "own"}])
    assert spec["imagePullSecrets"] == [{"name": "own"}]


def test_an_unknown_account_is_refused(target: Target, name: str) -> None:
    body = pod(name, serviceAccountName="nobody")
    got = target.client.post(target.path("pods"), body)
    assert (got.code, got.reason) == (403, "Forbidden")
    assert got.message == (
        f'pods "{name}" is forbidden: error looking up service account {target.namespace}/nobody: '
        'serviceaccount "nobody" not found'
    )
