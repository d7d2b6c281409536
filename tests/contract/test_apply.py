"""Server-side apply: owners of fields, conflicts between them, and what nobody applies any more."""

from __future__ import annotations

from tests.contract.conftest import Target
from tests.contract.objects import config_map, pod
from tests.support.client import MERGE, Obj


def managers(obj: Obj) -> dict[str, str]:
    return {entry["manager"]: entry["operation"] for entry in obj["metadata"]["managedFields"]}


def test_apply_creates_what_is_not_there(target: Target, name: str) -> None:
    made = target.client.apply(target.path("configmaps", name), config_map(name))
    assert made.code == 201
    assert managers(made.body) == {"tester": "Apply"}
    owned = made.body["metadata"]["managedFields"][0]["fieldsV1"]
    assert owned == {"f:data": {"f:key": {}}}


def test_applying_the_same_again_is_no_new_version(target: Target, name: str) -> None:
    made = target.client.apply(target.path("configmaps", name), config_map(name))
    again = target.client.apply(target.path("configmaps", name), config_map(name))
    assert (again.code, again.rv) == (200, made.rv)


def test_apply_takes_away_what_its_manager_no_longer_applies(target: Target, name: str) -> None:
    where = target.path("configmaps", name)
    target.client.apply(where, config_map(name, data={"a": "1", "b": "2"}))
    got = target.client.apply(where, config_map(name, data={"a": "1"}))
    assert got.body["data"] == {"a": "1"}


def test_apply_leaves_what_others_own(target: Target, name: str) -> None:
    where = target.path("configmaps", name)
    target.client.apply(where, config_map(name, data={"a": "1"}))
    target.client.patch(where, {"data": {"b": "2"}}, MERGE, fieldManager="other")
    got = target.client.apply(where, config_map(name, data={"c": "3"}))
    assert got.body["data"] == {"b": "2", "c": "3"}


def test_a_field_of_another_applier_is_a_conflict(target: Target, name: str) -> None:
    where = target.path("configmaps", name)
    target.client.apply(where, config_map(name, data={"a": "1"}), "first")
    got = target.client.apply(where, config_map(name, data={"a": "2"}), "second")
    assert (got.code, got.reason) == (409, "Conflict")
    assert got.message == 'Apply failed with 1 conflict: conflict with "first": .data.a'
    assert got.body["details"]["causes"] == [
        {"reason": "FieldManagerConflict", "message": 'conflict with "first"', "field": ".data.a"}
    ]


def test_a_field_of_an_updater_is_a_conflict_that_names_it(target: Target, name: str) -> None:
    where = target.path("configmaps")
    body = config_map(name, data={"a": "1", "b": "1"})
    target.client.post(where, body, fieldManager="maker")
    got = target.client.apply(f"{where}/{name}", config_map(name, data={"a": "2", "b": "2"}))
    assert got.code == 409
    first, second, third = got.message.split("\n")
    assert first.startswith('Apply failed with 2 conflicts: conflicts with "maker" using v1')
    assert (second, third) == ("- .data.a", "- .data.b")


def test_the_same_value_is_shared_without_a_conflict(target: Target, name: str) -> None:
    where = target.path("configmaps", name)
    target.client.apply(where, config_map(name), "first")
    got = target.client.apply(where, config_map(name), "second")
    assert got.code == 200
    assert set(managers(got.body)) == {"first", "second"}
    left = target.client.apply(where, config_map(name, data={}), "first")
    assert left.body["data"] == {"key": "value"}


def test_force_takes_the_field_over(target: Target, name: str) -> None:
    where = target.path("configmaps", name)
    target.client.apply(where, config_map(name, data={"a": "1"}), "first")
    got = target.client.apply(where, config_map(name, data={"a": "2"}), "second", force="true")
    assert got.body["data"] == {"a": "2"}
    assert set(managers(got.body)) == {"second"}


def test_a_plain_write_takes_fields_without_a_word(target: Target, name: str) -> None:
    where = target.path("configmaps", name)
    target.client.apply(where, config_map(name, data={"a": "1"}), "first")
    target.client.patch(where, {"data": {"a": "2"}}, MERGE, fieldManager="other")
    got = target.client.apply(where, config_map(name, data={"a": "1"}), "first")
    assert (got.code, got.reason) == (409, "Conflict")


def test_a_dry_run_of_an_apply_changes_nothing(target: Target, name: str) -> None:
    where = target.path("configmaps", name)
    tried = target.client.apply(where, config_map(name), dryRun="All")
    assert tried.code in (200, 201)
    assert target.client.get(where).code == 404
    made = target.client.apply(where, config_map(name))
    tried = target.client.apply(where, config_map(name, data={"key": "2"}), dryRun="All")
    assert tried.body["data"] == {"key": "2"}
    assert target.client.get(where).rv == made.rv


def test_apply_needs_a_manager(target: Target, name: str) -> None:
    got = target.client.patch(
        target.path("configmaps", name), config_map(name), "application/apply-patch+yaml"
    )
    assert got.code in (400, 422)
    assert "fieldManager: Required value: is required for apply patch" in got.message


def test_apply_refuses_managed_fields_in_its_body(target: Target, name: str) -> None:
    body = config_map(name, managedFields=[{"manager": "x"}])
    got = target.client.apply(target.path("configmaps", name), body)
    assert got.code in (400, 422)
    assert "metadata.managedFields must be nil" in got.message


def test_apply_with_an_old_version_is_a_conflict(target: Target, name: str) -> None:
    where = target.path("configmaps", name)
    made = target.client.apply(where, config_map(name))
    target.client.patch(where, {"data": {"z": "1"}})
    got = target.client.apply(where, config_map(name, resourceVersion=made.rv, data={"a": "1"}))
    assert (got.code, got.reason) == (409, "Conflict")


def test_apply_refuses_a_field_that_does_not_exist(target: Target, name: str) -> None:
    got = target.client.apply(target.path("pods", name), pod(name, nonsense=1))
    assert got.code >= 400
    assert "field not declared in schema" in got.message


def test_apply_merges_containers_by_name_and_keeps_defaults(target: Target, name: str) -> None:
    where = target.path("pods", name)
    made = target.client.apply(where, pod(name))
    assert made.code == 201, made.body
    body = pod(name)
    body["spec"]["containers"][0]["image"] = "registry.invalid/tool:2"
    got = target.client.apply(where, body)
    (container,) = got.body["spec"]["containers"]
    assert container["image"] == "registry.invalid/tool:2"
    assert container["imagePullPolicy"] == "IfNotPresent"
    owned = got.body["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"]["f:containers"]
    assert owned == {'k:{"name":"main"}': {".": {}, "f:image": {}, "f:name": {}}}


def test_apply_works_on_yaml(target: Target, name: str) -> None:
    text = f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\ndata:\n  key: 'yes'\n"
    got = target.client.call(
        "PATCH",
        target.path("configmaps", name),
        raw=text.encode(),
        content_type="application/apply-patch+yaml",
        fieldManager="tester",
    )
    assert (got.code, got.body["data"]) == (201, {"key": "yes"})


def test_an_item_of_a_list_goes_when_it_is_no_longer_applied(target: Target, name: str) -> None:
    owners = []
    for number in range(2):
        made = target.client.post(target.path("configmaps"), config_map(f"{name}-{number}"))
        meta = made.body["metadata"]
        owners.append(
            {"apiVersion": "v1", "kind": "ConfigMap", "name": meta["name"], "uid": meta["uid"]}
        )
    where = target.path("configmaps", name)
    target.client.apply(where, config_map(name, ownerReferences=owners))
    got = target.client.apply(where, config_map(name, ownerReferences=owners[1:]))
    assert got.body["metadata"]["ownerReferences"] == owners[1:]


def test_a_member_of_a_set_goes_when_it_is_no_longer_applied(target: Target, name: str) -> None:
    where = target.path("configmaps", name)
    target.client.apply(where, config_map(name, finalizers=["a.test/1", "a.test/2"]))
    got = target.client.apply(where, config_map(name, finalizers=["a.test/2"]))
    assert got.body["metadata"]["finalizers"] == ["a.test/2"]
    target.client.patch(where, {"metadata": {"finalizers": None}})


def test_labels_are_owned_one_by_one(target: Target, name: str) -> None:
    where = target.path("configmaps", name)
    target.client.apply(where, config_map(name, labels={"a": "1", "b": "1"}), "first")
    target.client.patch(where, {"metadata": {"labels": {"c": "1"}}}, fieldManager="other")
    got = target.client.apply(where, config_map(name, labels={"a": "2"}), "first")
    assert got.body["metadata"]["labels"] == {"a": "2", "c": "1"}
