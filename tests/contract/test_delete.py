"""delete: preconditions, finalizers, propagation, collections, and the garbage collector."""

from __future__ import annotations

from tests.contract.conftest import Target
from tests.contract.objects import config_map, pod
from tests.support.client import Obj, eventually
from tests.support.http import Reply


def owned_by(owner: Reply, **more: object) -> list[Obj]:
    meta = owner.body["metadata"]
    kind = {"apiVersion": "v1", "kind": owner.body["kind"]}
    return [{**kind, "name": meta["name"], "uid": meta["uid"], **more}]


def gone(target: Target, resource: str, name: str) -> bool:
    return target.client.get(target.path(resource, name)).code == 404


def test_a_deleted_config_map_is_told_as_a_success(target: Target, name: str) -> None:
    made = target.client.post(target.path("configmaps"), config_map(name))
    got = target.client.delete(target.path("configmaps", name))
    assert (got.code, got.body["kind"], got.body["status"]) == (200, "Status", "Success")
    assert got.body["details"] == {"name": name, "kind": "configmaps", "uid": made.uid}
    assert gone(target, "configmaps", name)


def test_a_deleted_pod_comes_back_as_it_was(target: Target, name: str) -> None:
    made = target.client.post(target.path("pods"), pod(name))
    got = target.client.delete(target.path("pods", name))
    assert (got.code, got.body["kind"], got.uid) == (200, "Pod", made.uid)
    assert gone(target, "pods", name)


def test_deleting_what_is_not_there_is_not_found(target: Target, name: str) -> None:
    got = target.client.delete(target.path("pods", name))
    assert (got.code, got.message) == (404, f'pods "{name}" not found')


def test_a_uid_that_does_not_match_deletes_nothing(target: Target, name: str) -> None:
    made = target.client.post(target.path("configmaps"), config_map(name))
    got = target.client.delete(target.path("configmaps", name), {"preconditions": {"uid": "other"}})
    assert (got.code, got.reason) == (409, "Conflict")
    assert got.message.startswith(f'Operation cannot be fulfilled on ConfigMap "{name}": ')
    assert "UID in the precondition (other) does not match the UID in record" in got.message
    right = {"preconditions": {"uid": made.uid}}
    assert target.client.delete(target.path("configmaps", name), right).code == 200


def test_a_version_that_does_not_match_deletes_nothing(target: Target, name: str) -> None:
    made = target.client.post(target.path("configmaps"), config_map(name))
    new = target.client.patch(target.path("configmaps", name), {"data": {"key": "2"}})
    where = target.path("configmaps", name)
    got = target.client.delete(where, {"preconditions": {"resourceVersion": made.rv}})
    assert (got.code, got.reason) == (409, "Conflict")
    assert f"The ResourceVersion in the precondition ({made.rv})".lower() in got.message.lower()
    right = {"preconditions": {"uid": made.uid, "resourceVersion": new.rv}}
    assert target.client.delete(where, right).code == 200


def test_a_dry_run_deletes_nothing(target: Target, name: str) -> None:
    target.client.post(target.path("configmaps"), config_map(name))
    where = target.path("configmaps", name)
    assert target.client.delete(where, {"dryRun": ["All"]}).code == 200
    assert target.client.delete(where, dryRun="All").code == 200
    assert target.client.get(where).code == 200


def test_a_finalizer_holds_the_object_until_it_is_removed(target: Target, name: str) -> None:
    where = target.path("configmaps", name)
    target.client.post(target.path("configmaps"), config_map(name, finalizers=["engine.test/hold"]))
    got = target.client.delete(where)
    assert (got.code, got.body["kind"]) == (200, "ConfigMap")
    assert got.body["metadata"]["deletionTimestamp"]
    assert target.client.get(where).body["metadata"]["deletionTimestamp"]
    free = target.client.patch(where, {"metadata": {"finalizers": []}})
    assert free.code == 200
    assert gone(target, "configmaps", name)


def test_a_deleting_object_stays_deleting_whatever_is_written(target: Target, name: str) -> None:
    where = target.path("configmaps", name)
    target.client.post(target.path("configmaps"), config_map(name, finalizers=["engine.test/hold"]))
    target.client.delete(where)
    current = target.client.get(where).body
    del current["metadata"]["deletionTimestamp"]
    put = target.client.put(where, current)
    assert put.code in (200, 422)
    assert target.client.get(where).body["metadata"]["deletionTimestamp"]
    target.client.patch(where, {"metadata": {"finalizers": None}})


def test_dependents_go_with_their_owner(target: Target, name: str) -> None:
    owner = target.client.post(target.path("pods"), pod(name))
    for resource in ("configmaps", "secrets"):
        body = {"metadata": {"name": name, "ownerReferences": owned_by(owner)}}
        assert target.client.post(target.path(resource), body).code == 201
    target.client.delete(target.path("pods", name))
    eventually(lambda: gone(target, "configmaps", name) and gone(target, "secrets", name))


def test_an_object_born_with_a_dead_owner_is_collected(target: Target, name: str) -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "never-was", "uid": f"uid-{name}"}
    body = config_map(name, ownerReferences=[owner])
    assert target.client.post(target.path("configmaps"), body).code == 201
    eventually(lambda: gone(target, "configmaps", name), 30)


def test_an_owner_of_the_same_name_but_another_uid_is_no_owner(target: Target, name: str) -> None:
    target.client.post(target.path("pods"), pod(name))
    owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": f"uid-{name}"}
    body = config_map(name, ownerReferences=[owner])
    assert target.client.post(target.path("configmaps"), body).code == 201
    eventually(lambda: gone(target, "configmaps", name), 30)


def test_orphaned_dependents_lose_the_reference_and_stay(target: Target, name: str) -> None:
    owner = target.client.post(target.path("configmaps"), config_map(name))
    child = f"{name}-child"
    target.client.post(
        target.path("configmaps"), config_map(child, ownerReferences=owned_by(owner))
    )
    target.client.delete(target.path("configmaps", name), {"propagationPolicy": "Orphan"})
    eventually(lambda: gone(target, "configmaps", name))
    left = target.client.get(target.path("configmaps", child))
    assert left.code == 200
    assert "ownerReferences" not in left.body["metadata"]


def test_a_foreground_deletion_waits_for_blocking_dependents(target: Target, name: str) -> None:
    owner = target.client.post(target.path("configmaps"), config_map(name))
    child = f"{name}-child"
    body = config_map(
        child,
        ownerReferences=owned_by(owner, blockOwnerDeletion=True),
        finalizers=["engine.test/hold"],
    )
    target.client.post(target.path("configmaps"), body)
    where = target.path("configmaps", name)
    got = target.client.delete(where, {"propagationPolicy": "Foreground"})
    assert got.body["metadata"]["finalizers"] == ["foregroundDeletion"]
    child_at = target.path("configmaps", child)
    eventually(lambda: "deletionTimestamp" in target.client.get(child_at).body["metadata"])
    assert target.client.get(where).code == 200
    target.client.patch(child_at, {"metadata": {"finalizers": None}})
    eventually(lambda: gone(target, "configmaps", name))


def test_a_collection_is_deleted_by_selector(target: Target, name: str) -> None:
    where = target.path("configmaps")
    for number in range(3):
        target.client.post(where, config_map(f"{name}-{number}", labels={"group": name}))
    target.client.post(where, config_map(name))
    got = target.client.delete(where, labelSelector=f"group={name}")
    assert got.code == 200
    assert target.client.get(where, labelSelector=f"group={name}").names == []
    assert target.client.get(f"{where}/{name}").code == 200


def test_a_deleted_namespace_takes_its_content_along(target: Target, name: str) -> None:
    client = target.client
    client.post("/api/v1/namespaces", {"metadata": {"name": name}})
    client.post(f"/api/v1/namespaces/{name}/configmaps", config_map("inside"))
    client.delete(f"/api/v1/namespaces/{name}")
    eventually(lambda: client.get(f"/api/v1/namespaces/{name}").code == 404, 30)
    assert client.get(f"/api/v1/namespaces/{name}/configmaps/inside").code == 404


def test_a_name_can_be_used_again_with_another_uid(target: Target, name: str) -> None:
    first = target.client.post(target.path("configmaps"), config_map(name))
    target.client.delete(target.path("configmaps", name))
    second = target.client.post(target.path("configmaps"), config_map(name))
    assert second.code == 201
    assert second.uid != first.uid
