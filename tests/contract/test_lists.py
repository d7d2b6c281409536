"""list: selectors, pages, and the forms a client may ask for."""

from __future__ import annotations

import pytest

from tests.contract.conftest import Target
from tests.contract.objects import config_map, pod
from tests.support.client import METADATA, METADATA_LIST, TABLE

LABELS = {
    "one": {"app": "web", "tier": "front"},
    "two": {"app": "web", "tier": "back"},
    "three": {"app": "db"},
    "four": {},
}


@pytest.fixture(scope="module")
def labelled(target: Target) -> Target:
    for name, labels in LABELS.items():
        target.client.post(target.path("secrets"), {"metadata": {"name": name, "labels": labels}})
    return target


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("app=web", ["one", "two"]),
        ("app==db", ["three"]),
        ("app!=web", ["four", "three"]),
        ("app", ["one", "three", "two"]),
        ("!app", ["four"]),
        ("app in (web, db)", ["one", "three", "two"]),
        ("app notin (web)", ["four", "three"]),
        ("app=web,tier in (front)", ["one"]),
        ("app,!tier", ["three"]),
        ("", ["four", "one", "three", "two"]),
    ],
)
def test_label_selectors(labelled: Target, selector: str, expected: list[str]) -> None:
    got = labelled.client.get(labelled.path("secrets"), labelSelector=selector)
    names = [name for name in got.names if name in LABELS]
    assert names == expected


@pytest.mark.parametrize("selector", ["a=b=c", "a in b", "(", "a in (b"])
def test_a_selector_that_cannot_be_read_is_a_bad_request(labelled: Target, selector: str) -> None:
    got = labelled.client.get(labelled.path("secrets"), labelSelector=selector)
    assert (got.code, got.reason) == (400, "BadRequest")


def test_field_selectors(labelled: Target) -> None:
    got = labelled.client.get(labelled.path("secrets"), fieldSelector="metadata.name=two")
    assert got.names == ["two"]
    got = labelled.client.get(labelled.path("secrets"), fieldSelector="metadata.name!=two")
    assert "two" not in got.names


def test_an_unindexed_field_is_a_bad_request(labelled: Target) -> None:
    got = labelled.client.get(labelled.path("secrets"), fieldSelector="data.key=x")
    assert (got.code, got.reason) == (400, "BadRequest")
    assert "field label not supported: data.key" in got.message


def test_pods_are_selected_by_phase_and_node(target: Target, name: str) -> None:
    target.client.post(target.path("pods"), pod(name))
    where = target.path("pods")
    assert name in target.client.get(where, fieldSelector="status.phase=Pending").names
    assert name not in target.client.get(where, fieldSelector="status.phase!=Pending").names
    assert name in target.client.get(where, fieldSelector="spec.nodeName=").names


def test_a_list_has_a_kind_and_a_version_and_is_sorted_by_name(labelled: Target) -> None:
    got = labelled.client.get(labelled.path("secrets"))
    assert (got.body["kind"], got.body["apiVersion"]) == ("SecretList", "v1")
    assert int(got.rv) > 0
    assert got.names == sorted(got.names)


def test_pages_of_one_list_are_one_consistent_view(target: Target) -> None:
    client, where = target.client, target.path("configmaps")
    for number in range(7):
        client.post(where, config_map(f"page-{number}", labels={"paged": "yes"}))
    first = client.get(where, limit=3)
    assert len(first.names) == 3
    assert first.body["metadata"]["remainingItemCount"] > 0
    client.post(where, config_map("page-late"))
    seen = list(first.names)
    page = first
    while token := page.body["metadata"].get("continue"):
        page = client.get(where, **{"limit": 3, "continue": token})
        assert page.rv == first.rv
        seen += page.names
    assert [name for name in seen if name.startswith("page-")] == [f"page-{n}" for n in range(7)]
    assert len(seen) == len(set(seen))


def test_pages_respect_a_selector(target: Target) -> None:
    client, where = target.client, target.path("configmaps")
    for number in range(5):
        client.post(where, config_map(f"odd-{number}", labels={"odd": str(number % 2)}))
    first = client.get(where, limit=1, labelSelector="odd=1")
    assert first.names == ["odd-1"]
    assert "remainingItemCount" not in first.body["metadata"]
    token = first.body["metadata"]["continue"]
    second = client.get(where, **{"limit": 1, "continue": token, "labelSelector": "odd=1"})
    assert second.names == ["odd-3"]


def test_a_token_that_cannot_be_read_is_a_bad_request(target: Target) -> None:
    got = target.client.get(target.path("configmaps"), **{"limit": 1, "continue": "nonsense"})
    assert (got.code, got.reason) == (400, "BadRequest")


def test_lists_go_across_namespaces(labelled: Target) -> None:
    got = labelled.client.get("/api/v1/secrets", fieldSelector="metadata.name=three")
    spaces = [item["metadata"]["namespace"] for item in got.body["items"]]
    assert labelled.namespace in spaces


def test_metadata_only(labelled: Target) -> None:
    got = labelled.client.get(labelled.path("secrets"), accept=METADATA_LIST)
    assert got.body["kind"] == "PartialObjectMetadataList"
    assert got.body["apiVersion"] == "meta.k8s.io/v1"
    item = next(item for item in got.body["items"] if item["metadata"]["name"] == "one")
    assert set(item) <= {"kind", "apiVersion", "metadata"}
    assert item["metadata"]["labels"] == LABELS["one"]
    one = labelled.client.get(labelled.path("secrets", "one"), accept=METADATA)
    assert one.body["kind"] == "PartialObjectMetadata"


def test_metadata_only_in_pages(labelled: Target) -> None:
    got = labelled.client.get(labelled.path("secrets"), accept=METADATA_LIST, limit=2)
    assert len(got.names) == 2
    assert got.body["metadata"]["continue"]


def test_a_table_has_the_columns_that_kubectl_prints(target: Target, name: str) -> None:
    target.client.post(target.path("pods"), pod(name))
    got = target.client.get(
        target.path("pods"), accept=TABLE, fieldSelector=f"metadata.name={name}"
    )
    assert got.body["kind"] == "Table"
    columns = [c["name"] for c in got.body["columnDefinitions"] if c["priority"] == 0]
    assert columns == ["Name", "Ready", "Status", "Restarts", "Age"]
    (row,) = got.body["rows"]
    assert row["cells"][:3] == [name, "0/1", "Pending"]
    assert row["object"]["kind"] == "PartialObjectMetadata"
    assert row["object"]["metadata"]["name"] == name


@pytest.mark.parametrize(
    ("resource", "columns"),
    [
        ("configmaps", ["Name", "Data", "Age"]),
        ("secrets", ["Name", "Type", "Data", "Age"]),
        pytest.param("serviceaccounts", ["Name", "Age"], marks=pytest.mark.since(1, 36)),
        pytest.param(
            "resourcequotas",
            ["Name", "Request", "Limit", "Age"],
            marks=pytest.mark.since(1, 36),
        ),
        ("events", ["Last Seen", "Type", "Reason", "Object", "Message"]),
    ],
)
def test_tables_of_the_other_kinds(target: Target, resource: str, columns: list[str]) -> None:
    got = target.client.get(target.path(resource), accept=TABLE)
    assert [c["name"] for c in got.body["columnDefinitions"] if c["priority"] == 0] == columns


def test_a_version_from_the_future_is_too_large(target: Target) -> None:
    got = target.client.get(target.path("configmaps"), resourceVersion="999999999")
    assert (got.code, got.reason) == (504, "Timeout")
