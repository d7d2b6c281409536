"""create: what comes back, and what is refused in which words."""

from __future__ import annotations

import pytest

from tests.contract.conftest import Target
from tests.contract.objects import config_map, pod
from tests.support.client import Client


def test_a_created_object_comes_back_with_uid_version_and_time(target: Target, name: str) -> None:
    made = target.client.post(target.path("configmaps"), config_map(name))
    assert made.code == 201
    meta = made.body["metadata"]
    assert meta["uid"]
    assert int(meta["resourceVersion"]) > 0
    assert meta["creationTimestamp"].endswith("Z")
    assert meta["namespace"] == target.namespace
    assert made.body["data"] == {"key": "value"}
    got = target.client.get(target.path("configmaps", name))
    assert got.code == 200
    assert got.body == made.body


def test_kind_and_version_may_be_left_out_of_a_body(target: Target, name: str) -> None:
    made = target.client.post(target.path("configmaps"), {"metadata": {"name": name}})
    assert (made.code, made.body["kind"], made.body["apiVersion"]) == (201, "ConfigMap", "v1")


def test_the_creator_is_a_field_manager(target: Target, name: str) -> None:
    made = target.client.post(target.path("configmaps"), config_map(name), fieldManager="me")
    (entry,) = made.body["metadata"]["managedFields"]
    assert (entry["manager"], entry["operation"]) == ("me", "Update")


def test_without_a_field_manager_the_user_agent_is_it(target: Target, name: str) -> None:
    made = target.client.post(target.path("configmaps"), config_map(name))
    assert made.body["metadata"]["managedFields"][0]["manager"] == "engine-tests"


def test_creating_the_same_name_again_already_exists(target: Target, name: str) -> None:
    target.client.post(target.path("configmaps"), config_map(name))
    again = target.client.post(target.path("configmaps"), config_map(name))
    assert (again.code, again.reason) == (409, "AlreadyExists")
    assert again.message == f'configmaps "{name}" already exists'
    assert again.body["details"] == {"name": name, "kind": "configmaps"}


def test_what_is_not_there_is_not_found(target: Target, name: str) -> None:
    got = target.client.get(target.path("pods", name))
    assert (got.code, got.reason, got.body["status"]) == (404, "NotFound", "Failure")
    assert got.message == f'pods "{name}" not found'
    assert got.body["details"] == {"name": name, "kind": "pods"}


def test_a_missing_namespace_is_not_found(target: Target, name: str) -> None:
    made = target.client.post("/api/v1/namespaces/no-such-place/configmaps", config_map(name))
    assert (made.code, made.message) == (404, 'namespaces "no-such-place" not found')


def test_a_terminating_namespace_takes_nothing_new(target: Target, name: str) -> None:
    client = target.client
    client.post("/api/v1/namespaces", {"metadata": {"name": name}})
    held = config_map("held", finalizers=["engine.test/hold"])
    client.post(f"/api/v1/namespaces/{name}/configmaps", held)
    gone = client.delete(f"/api/v1/namespaces/{name}")
    assert gone.code == 200
    assert gone.body["status"]["phase"] == "Terminating"
    made = client.post(f"/api/v1/namespaces/{name}/configmaps", config_map("late"))
    assert (made.code, made.reason) == (403, "Forbidden")
    assert made.message == (
        f'configmaps "late" is forbidden: unable to create new content in namespace {name} '
        "because it is being terminated"
    )
    assert made.body["details"]["causes"][0]["reason"] == "NamespaceTerminating"
    client.patch(f"/api/v1/namespaces/{name}/configmaps/held", {"metadata": {"finalizers": None}})


def test_generate_name_adds_five_characters(target: Target) -> None:
    body = {"metadata": {"generateName": "made-"}}
    first = target.client.post(target.path("configmaps"), body)
    second = target.client.post(target.path("configmaps"), body)
    names = [reply.body["metadata"]["name"] for reply in (first, second)]
    assert names[0] != names[1]
    assert all(name.startswith("made-") and len(name) == 10 for name in names)
    assert first.body["metadata"]["generateName"] == "made-"


def test_a_name_is_required(target: Target) -> None:
    made = target.client.post(target.path("configmaps"), {"metadata": {}})
    assert (made.code, made.reason) == (422, "Invalid")
    assert made.message == (
        'ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required'
    )


def test_a_bad_name_is_refused_with_its_cause(target: Target) -> None:
    made = target.client.post(target.path("configmaps"), config_map("Bad_Name"))
    assert (made.code, made.reason) == (422, "Invalid")
    assert made.message.startswith(
        'ConfigMap "Bad_Name" is invalid: metadata.name: Invalid value: '
    )
    assert "RFC 1123 subdomain must consist of lower case alphanumeric characters" in made.message
    (cause,) = made.body["details"]["causes"]
    assert (cause["field"], cause["reason"]) == ("metadata.name", "FieldValueInvalid")
    assert cause["message"] in made.message


def test_a_bad_label_value_is_refused(target: Target, name: str) -> None:
    made = target.client.post(target.path("configmaps"), config_map(name, labels={"a": "b c"}))
    assert made.code == 422
    assert 'metadata.labels: Invalid value: "b c": a valid label must be an empty string' in (
        made.message
    )


@pytest.mark.since(1, 36)
def test_an_owner_reference_without_uid_is_refused(target: Target, name: str) -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": ""}
    made = target.client.post(target.path("configmaps"), config_map(name, ownerReferences=[owner]))
    assert made.code == 422
    words = 'metadata.ownerReferences.uid: Invalid value: "": must not be empty'
    assert made.message == f'ConfigMap "{name}" is invalid: {words}'


def test_another_namespace_in_the_body_is_refused(target: Target, name: str) -> None:
    made = target.client.post(target.path("configmaps"), config_map(name, namespace="other"))
    assert (made.code, made.reason) == (400, "BadRequest")
    assert "namespace of the provided object does not match the namespace sent on" in made.message


def test_another_kind_in_the_body_is_refused(target: Target, name: str) -> None:
    made = target.client.post(target.path("pods"), config_map(name))
    assert (made.code, made.reason) == (400, "BadRequest")
    assert made.message.startswith('ConfigMap in version "v1" cannot be handled as a Pod')


def test_a_wrong_type_is_refused(target: Target, name: str) -> None:
    made = target.client.post(target.path("pods"), pod(name, activeDeadlineSeconds="soon"))
    assert (made.code, made.reason) == (400, "BadRequest")
    assert made.message.startswith('Pod in version "v1" cannot be handled as a Pod')


def test_an_unknown_field_is_dropped_unless_strict(target: Target, name: str) -> None:
    made = target.client.post(target.path("pods"), pod(name, nonsense=1))
    assert made.code == 201
    assert "nonsense" not in made.body["spec"]


def test_a_dry_run_stores_nothing(target: Target, name: str) -> None:
    tried = target.client.post(target.path("configmaps"), config_map(name), dryRun="All")
    assert tried.code == 201
    assert tried.uid
    assert "resourceVersion" not in tried.body["metadata"]
    assert target.client.get(target.path("configmaps", name)).code == 404


def test_a_dry_run_is_checked_like_a_real_one(target: Target) -> None:
    tried = target.client.post(target.path("configmaps"), config_map("Bad_Name"), dryRun="All")
    assert tried.code == 422


def test_a_dry_run_knows_only_all(target: Target, name: str) -> None:
    tried = target.client.post(target.path("configmaps"), config_map(name), dryRun="Some")
    assert tried.code in (400, 422)


@pytest.mark.parametrize("body", [b"{", b"[]", b'"text"', b"nonsense", b""])
def test_what_is_no_object_is_a_bad_request(target: Target, body: bytes) -> None:
    made = target.client.call("POST", target.path("configmaps"), raw=body)
    assert made.code in (400, 422)
    assert made.body["kind"] == "Status"


def test_a_body_over_the_limit_is_refused_and_the_server_stays_up(target: Target) -> None:
    big = config_map("big", data={"key": "x" * (3 * 1024 * 1024)})
    made = target.client.post(target.path("configmaps"), big)
    assert (made.code, made.reason) == (413, "RequestEntityTooLarge")
    assert target.client.get("/version").code == 200


def test_an_unknown_content_type_is_unsupported(target: Target, name: str) -> None:
    made = target.client.post(
        target.path("configmaps"), config_map(name), content_type="application/x-nonsense"
    )
    assert (made.code, made.reason) == (415, "UnsupportedMediaType")


@pytest.mark.parametrize(
    "path", ["/api/v1/nonsense", "/apis/nonsense/v1/things", "/api/v1/namespaces/default/nonsense"]
)
def test_an_unknown_resource_is_not_found(target: Target, path: str) -> None:
    assert target.client.get(path).code == 404


def test_a_method_that_a_resource_lacks_is_not_allowed(target: Target) -> None:
    assert target.client.call("PUT", target.path("configmaps"), raw=b"{}").code == 405


def test_discovery_names_what_is_served(target: Target) -> None:
    client: Client = target.client
    assert client.get("/api").body["versions"] == ["v1"]
    rows = {row["name"]: row for row in client.get("/api/v1").body["resources"]}
    assert {"pods", "pods/status", "pods/log", "secrets", "configmaps", "namespaces"} <= set(rows)
    assert rows["pods"]["shortNames"] == ["po"]
    assert rows["nodes"]["namespaced"] is False
    groups = {group["name"] for group in client.get("/apis").body["groups"]}
    assert {"coordination.k8s.io", "authorization.k8s.io"} <= groups
    assert client.get("/version").body["major"] == "1"
    assert client.get("/healthz").body == "ok"


def test_a_self_review_says_what_is_allowed(target: Target) -> None:
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {"verb": "create", "resource": "pods", "namespace": "a"}},
    }
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    review = target.client.post(path, body)
    assert review.code == 201
    assert review.body["status"]["allowed"] is True
