"""update and patch: what changes, what may not, and what happens when somebody was faster."""

from __future__ import annotations

from tests.contract.conftest import Target
from tests.contract.objects import config_map, pod
from tests.support.client import JSON_PATCH, MERGE, STRATEGIC


def test_an_update_replaces_the_object(target: Target, name: str) -> None:
    made = target.client.post(target.path("configmaps"), config_map(name, labels={"a": "b"}))
    new = config_map(name, resourceVersion=made.rv, data={"other": "1"})
    put = target.client.put(target.path("configmaps", name), new)
    assert put.code == 200
    assert put.body["data"] == {"other": "1"}
    assert "labels" not in put.body["metadata"]
    assert put.uid == made.uid
    assert put.body["metadata"]["creationTimestamp"] == made.body["metadata"]["creationTimestamp"]
    assert int(put.rv) > int(made.rv)


def test_an_update_with_an_old_version_is_a_conflict(target: Target, name: str) -> None:
    made = target.client.post(target.path("configmaps"), config_map(name))
    target.client.patch(target.path("configmaps", name), {"data": {"key": "2"}})
    put = target.client.put(
        target.path("configmaps", name), config_map(name, resourceVersion=made.rv)
    )
    assert (put.code, put.reason) == (409, "Conflict")
    assert put.message == (
        f'Operation cannot be fulfilled on configmaps "{name}": the object has been modified; '
        "please apply your changes to the latest version and try again"
    )


def test_an_update_with_another_uid_is_a_conflict(target: Target, name: str) -> None:
    target.client.post(target.path("configmaps"), config_map(name))
    put = target.client.put(target.path("configmaps", name), config_map(name, uid="other"))
    assert (put.code, put.reason) == (409, "Conflict")
    assert "Precondition failed: UID in precondition: other" in put.message


def test_an_update_of_another_name_is_a_bad_request(target: Target, name: str) -> None:
    target.client.post(target.path("configmaps"), config_map(name))
    put = target.client.put(target.path("configmaps", name), config_map("other"))
    assert put.code == 400
    assert "does not match the name on the URL" in put.message


def test_an_update_of_what_is_not_there_is_not_found(target: Target, name: str) -> None:
    assert target.client.patch(target.path("configmaps", name), {"data": {}}).code == 404
    new = config_map(name, resourceVersion="1")
    assert target.client.put(target.path("configmaps", name), new).code in (404, 409)


def test_a_change_of_nothing_is_no_new_version(target: Target, name: str) -> None:
    made = target.client.post(target.path("configmaps"), config_map(name))
    same = target.client.patch(target.path("configmaps", name), {"data": {"key": "value"}})
    assert (same.code, same.rv) == (200, made.rv)
    put = target.client.put(target.path("configmaps", name), config_map(name))
    assert put.rv == made.rv


def test_a_dry_run_of_a_patch_changes_nothing(target: Target, name: str) -> None:
    made = target.client.post(target.path("configmaps"), config_map(name))
    tried = target.client.patch(
        target.path("configmaps", name), {"data": {"key": "2"}}, dryRun="All"
    )
    assert tried.body["data"] == {"key": "2"}
    got = target.client.get(target.path("configmaps", name))
    assert (got.body["data"], got.rv) == ({"key": "value"}, made.rv)


def test_a_merge_patch_merges_and_null_removes(target: Target, name: str) -> None:
    target.client.post(target.path("configmaps"), config_map(name, data={"a": "1", "b": "2"}))
    got = target.client.patch(
        target.path("configmaps", name), {"data": {"a": None, "c": "3"}}, MERGE
    )
    assert got.body["data"] == {"b": "2", "c": "3"}


def test_a_merge_patch_with_an_old_version_is_a_conflict(target: Target, name: str) -> None:
    made = target.client.post(target.path("configmaps"), config_map(name))
    target.client.patch(target.path("configmaps", name), {"data": {"key": "2"}})
    stale = {"metadata": {"resourceVersion": made.rv}, "data": {"key": "3"}}
    got = target.client.patch(target.path("configmaps", name), stale)
    assert (got.code, got.reason) == (409, "Conflict")


def test_a_json_patch_tests_before_it_changes(target: Target, name: str) -> None:
    made = target.client.post(target.path("configmaps"), config_map(name))
    steps = [
        {"op": "test", "path": "/metadata/uid", "value": made.uid},
        {"op": "add", "path": "/data/more", "value": "1"},
        {"op": "replace", "path": "/data/key", "value": "2"},
    ]
    got = target.client.patch(target.path("configmaps", name), steps, JSON_PATCH)
    assert got.body["data"] == {"key": "2", "more": "1"}


def test_a_json_patch_whose_test_fails_changes_nothing(target: Target, name: str) -> None:
    made = target.client.post(target.path("configmaps"), config_map(name))
    steps = [
        {"op": "replace", "path": "/data/key", "value": "2"},
        {"op": "test", "path": "/metadata/uid", "value": "other"},
    ]
    got = target.client.patch(target.path("configmaps", name), steps, JSON_PATCH)
    assert (got.code, got.reason) == (422, "Invalid")
    assert got.message == "the server rejected our request due to an error in our request"
    assert target.client.get(target.path("configmaps", name)).rv == made.rv


def test_a_json_patch_of_a_missing_path_is_refused(target: Target, name: str) -> None:
    target.client.post(target.path("configmaps"), config_map(name))
    steps = [{"op": "remove", "path": "/data/nothing"}]
    assert target.client.patch(target.path("configmaps", name), steps, JSON_PATCH).code == 422


def test_a_json_patch_that_is_none_is_a_bad_request(target: Target, name: str) -> None:
    target.client.post(target.path("configmaps"), config_map(name))
    got = target.client.patch(target.path("configmaps", name), {"op": "add"}, JSON_PATCH)
    assert (got.code, got.reason) == (400, "BadRequest")


def test_an_unknown_patch_format_is_unsupported(target: Target, name: str) -> None:
    target.client.post(target.path("configmaps"), config_map(name))
    got = target.client.patch(target.path("configmaps", name), {}, "application/json")
    assert got.code == 415


def test_a_strategic_patch_merges_containers_by_name(target: Target, name: str) -> None:
    target.client.post(target.path("pods"), pod(name))
    change = {"spec": {"containers": [{"name": "main", "image": "registry.invalid/tool:2"}]}}
    got = target.client.patch(target.path("pods", name), change, STRATEGIC)
    assert got.code == 200, got.body
    (container,) = got.body["spec"]["containers"]
    assert container["image"] == "registry.invalid/tool:2"
    assert container["terminationMessagePath"] == "/dev/termination-log"


def test_a_strategic_patch_adds_and_deletes_owners_by_uid(target: Target, name: str) -> None:
    owners = [
        {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "1"},
        {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "2"},
    ]
    held = config_map(name, ownerReferences=owners, finalizers=["engine.test/hold"])
    target.client.post(target.path("configmaps"), held)
    change = {"metadata": {"ownerReferences": [{"uid": "1", "$patch": "delete"}]}}
    got = target.client.patch(target.path("configmaps", name), change, STRATEGIC, dryRun="All")
    assert [owner["uid"] for owner in got.body["metadata"]["ownerReferences"]] == ["2"]
    target.client.patch(target.path("configmaps", name), {"metadata": {"finalizers": None}})


def test_a_strategic_patch_adds_to_finalizers(target: Target, name: str) -> None:
    held = config_map(name, finalizers=["engine.test/one"])
    target.client.post(target.path("configmaps"), held)
    where = target.path("configmaps", name)
    got = target.client.patch(
        where, {"metadata": {"finalizers": ["engine.test/two"]}}, STRATEGIC, dryRun="All"
    )
    assert set(got.body["metadata"]["finalizers"]) == {"engine.test/one", "engine.test/two"}
    drop = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["engine.test/one"]}}
    got = target.client.patch(where, drop, STRATEGIC)
    assert "finalizers" not in got.body["metadata"]


def test_a_strategic_patch_replaces_what_it_is_told_to(target: Target, name: str) -> None:
    target.client.post(target.path("configmaps"), config_map(name, data={"a": "1", "b": "2"}))
    change = {"data": {"$patch": "replace", "c": "3"}}
    got = target.client.patch(target.path("configmaps", name), change, STRATEGIC)
    assert got.body["data"] == {"c": "3"}


def test_the_status_is_changed_through_its_subresource_only(target: Target, name: str) -> None:
    made = target.client.post(target.path("pods"), pod(name))
    where = target.path("pods", name)
    main = target.client.patch(where, {"status": {"reason": "X"}}, STRATEGIC)
    assert "reason" not in main.body["status"]
    status = target.client.patch(
        f"{where}/status", {"status": {"reason": "X"}, "spec": {"restartPolicy": "Always"}}, MERGE
    )
    assert status.code == 200, status.body
    assert status.body["status"]["reason"] == "X"
    assert status.body["spec"]["restartPolicy"] == "Never"
    assert status.uid == made.uid


def test_each_writer_is_a_field_manager_with_the_time_of_its_write(
    target: Target, name: str
) -> None:
    where = target.path("configmaps")
    target.client.post(where, config_map(name, data={"a": "1", "b": "1"}), fieldManager="first")
    got = target.client.patch(f"{where}/{name}", {"data": {"b": "2"}}, MERGE, fieldManager="second")
    entries = got.body["metadata"]["managedFields"]
    assert [(entry["manager"], entry["operation"]) for entry in entries] == [
        ("first", "Update"),
        ("second", "Update"),
    ]
    assert all(entry["time"].endswith("Z") for entry in entries)
