"""JobSpec and JobDefaults objects: what their definitions make the API server do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.contract.conftest import Target
from tests.support.client import JSON_PATCH, MERGE, TABLE, Obj
from tests.support.definitions import install_definitions

LOGIN = {"registry": "r", "username": "u", "password": {"fromFile": "x"}}
ROOT = "/apis/jobs.engine/v1alpha1"
Path = Callable[..., str]


@pytest.fixture
def path(target: Target) -> Path:
    if target.is_real:
        install_definitions(target.client)

    def of(name: str = "", sub: str = "", resource: str = "jobspecs") -> str:
        parts = [f"{ROOT}/namespaces/{target.namespace}/{resource}", name, sub]
        return "/".join(part for part in parts if part)

    return of


def job(name: str, **spec: Any) -> Obj:
    return {
        "apiVersion": "jobs.engine/v1alpha1",
        "kind": "JobSpec",
        "metadata": {"name": name},
        "spec": {"image": "busybox:1", **spec},
    }


def test_a_job_spec_is_stored_as_it_was_written_and_has_not_been_seen(
    target: Target, path: Path, name: str
) -> None:
    spec = {"pullPolicy": ["Always", "Never"], "timeout": "1h", "podPatch": {"spec": {"x": [1]}}}
    made = target.client.post(path(), job(name, **spec))
    assert made.code == 201, made.body
    assert made.body["spec"] == {"image": "busybox:1", **spec}
    assert made.body["status"] == {"observedGeneration": -1}
    assert made.body["metadata"]["generation"] == 1


@pytest.mark.parametrize("policy", ["Never", ["Always", "IfNotPresent"]])
@pytest.mark.parametrize("timeout", [90, "90", "3h15m"])
def test_a_union_takes_each_of_its_forms(
    target: Target, path: Path, name: str, policy: object, timeout: object
) -> None:
    made = target.client.post(path(), job(name, pullPolicy=policy, timeout=timeout))
    assert made.code == 201, made.body
    assert (made.body["spec"]["pullPolicy"], made.body["spec"]["timeout"]) == (policy, timeout)


def test_a_misspelt_field_is_kept_so_that_it_can_be_refused(
    target: Target, path: Path, name: str
) -> None:
    spec = {"timout": "1h", "services": [{"name": "a", "image": "b", "imge": "c"}]}
    made = target.client.post(path(), job(name, **spec), dryRun="All", fieldValidation="Strict")
    assert made.code == 201, made.body
    assert made.body["spec"] == {"image": "busybox:1", **spec}


@pytest.mark.parametrize(
    ("spec", "field", "words"),
    [
        ({"timeout": "2x"}, "spec.timeout", 'Invalid value: "2x": use seconds, such as 11700,'),
        ({"timeout": -5}, "spec.timeout", "should be greater than or equal to 0"),
        ({"retry": {"max": 99}}, "spec.retry.max", "should be less than or equal to 10"),
        ({"env": {"A": 5}}, "spec.env.A", "spec.env.A in body must be of type string"),
        ({"onChange": "Stop"}, "spec.onChange",
         'Unsupported value: "Stop": supported values: "Replace", "Wait"'),
        ({"services": [{"name": "a"}]}, "spec.services[0].image", "Required value"),
        ({"services": [{"name": "A_", "image": "b"}]}, "spec.services[0].name",
         "Invalid value: \"A_\": lower case letters, digits and '-'"),
        ({"secrets": {"T": {"fromEnv": "X"}}}, "spec.secrets[T]",
         "Invalid value: fromEnv and fromFile read the engine's own machine"),
        ({"registryCredentials": [LOGIN]},
         "spec.registryCredentials[0].password",
         "Invalid value: fromEnv and fromFile read the engine's own machine"),
    ],
)  # fmt: skip
def test_what_the_schema_forbids_is_refused_at_its_place(
    target: Target, path: Path, name: str, spec: Obj, field: str, words: str
) -> None:
    made = target.client.post(path(), job(name, **spec))
    assert (made.code, made.reason) == (422, "Invalid")
    said = {cause["field"]: cause["message"] for cause in made.body["details"]["causes"]}
    assert words in said[field]


def test_a_name_is_at_most_48_characters_long(target: Target, path: Path, name: str) -> None:
    assert target.client.post(path(), job(name.ljust(48, "x"))).code == 201
    made = target.client.post(path(), job(name.ljust(49, "x")))
    assert (made.code, made.reason) == (422, "Invalid")


@pytest.mark.parametrize(
    ("before", "after"), [({}, {"managedBy": "a/b"}), ({"managedBy": "a/b"}, {"managedBy": None})]
)
def test_who_manages_a_job_cannot_change(
    target: Target, path: Path, name: str, before: Obj, after: Obj
) -> None:
    target.client.post(path(), job(name, **before))
    got = target.client.patch(path(name), {"spec": after}, MERGE)
    assert (got.code, got.reason) == (422, "Invalid")
    assert "managedBy is immutable" in got.message


def test_an_edit_counts_a_generation_and_a_status_does_not(
    target: Target, path: Path, name: str
) -> None:
    made = target.client.post(path(), job(name)).body
    status = {"state": "Running", "observedGeneration": 1, "record": {"runs": [{"free": "form"}]}}
    version = made["metadata"]["resourceVersion"]
    body = {**job(name, image="other"), "status": status}
    body["metadata"]["resourceVersion"] = version
    written = target.client.put(path(name, "status"), body)
    assert written.code == 200, written.body
    assert written.body["status"] == status
    assert written.body["spec"] == {"image": "busybox:1"}
    assert written.body["metadata"]["generation"] == 1
    assert target.client.put(path(name, "status"), body).code == 409

    edited = target.client.patch(path(name), {"spec": {"suspend": True}, "status": None}, MERGE)
    assert edited.body["metadata"]["generation"] == 2
    assert edited.body["status"] == status


def test_a_status_needs_no_spec_beside_it(target: Target, path: Path, name: str) -> None:
    labelled = job(name) | {"metadata": {"name": name, "labels": {"team": "web"}}}
    made = target.client.post(path(), labelled).body
    meta = {"name": name, "resourceVersion": made["metadata"]["resourceVersion"]}
    body = {"apiVersion": made["apiVersion"], "kind": "JobSpec", "metadata": meta,
            "status": {"state": "Queued"}}  # fmt: skip
    written = target.client.put(path(name, "status"), body)
    assert written.code == 200, written.body
    assert written.body["spec"] == {"image": "busybox:1"}
    assert written.body["metadata"]["labels"] == {"team": "web"}


def test_get_shows_the_columns_of_a_job(target: Target, path: Path, name: str) -> None:
    target.client.post(path(), job(name))
    attempts = [{"number": 1, "pod": "x-1"}, {"number": 2, "pod": "x-2"}]
    status = {"state": "Failed", "reason": "OOMKilled", "attempts": attempts, "took": "3s"}
    target.client.patch(path(name, "status"), {"status": status}, MERGE)
    got = target.client.get(path(name), accept=TABLE).body
    columns = [(c["name"], c["priority"]) for c in got["columnDefinitions"]]
    assert columns == [
        *((name, 0) for name in ("Name", "State", "Reason", "Attempts", "Age")),
        *(("Pod", 1), ("Took", 1)),
    ]
    cells = got["rows"][0]["cells"]
    assert [*cells[:4], *cells[5:]] == [name, "Failed", "OOMKilled", 2, "x-2", "3s"]


def test_jobs_are_selected_by_their_state(target: Target, path: Path, name: str) -> None:
    for each, state in ((f"{name}-a", "Failed"), (f"{name}-b", "Running")):
        target.client.post(path(), job(each))
        target.client.patch(path(each, "status"), {"status": {"state": state}}, MERGE)
    got = target.client.get(path(), fieldSelector="status.state=Failed").body
    names = {one["metadata"]["name"] for one in got["items"]}
    assert f"{name}-a" in names
    assert f"{name}-b" not in names
    assert target.client.get(path(), fieldSelector="spec.image=x").code == 400


def test_defaults_are_objects_without_a_status(target: Target, path: Path, name: str) -> None:
    body = {**job(name), "kind": "JobDefaults", "spec": {"timeout": "5m"}}
    made = target.client.post(path(resource="jobdefaults"), body)
    assert made.code == 201, made.body
    assert "status" not in made.body
    assert target.client.get(path(name, "status", "jobdefaults")).code == 404


def test_a_json_patch_is_judged_like_any_write(target: Target, path: Path, name: str) -> None:
    target.client.post(path(), job(name))
    change = [{"op": "add", "path": "/spec/timeout", "value": "soon"}]
    assert target.client.patch(path(name), change, JSON_PATCH).code == 422


def test_the_kinds_are_discovered(target: Target, path: Path) -> None:
    listed = target.client.get(ROOT).body["resources"]
    found = {one["name"]: one for one in listed}
    assert set(found) == {"jobspecs", "jobspecs/status", "jobdefaults"}
    assert found["jobspecs"]["shortNames"] == ["js"]
    assert found["jobspecs"]["categories"] == ["engine"]
    groups = target.client.get("/apis").body["groups"]
    assert "jobs.engine" in [group["name"] for group in groups]
