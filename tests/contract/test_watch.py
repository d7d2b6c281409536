"""watch: events in order, from a version on; selectors, bookmarks, and versions long gone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.contract.conftest import Target
from tests.contract.objects import config_map
from tests.support.client import MERGE, METADATA, eventually


def one(name: str) -> dict[str, Any]:
    return {"fieldSelector": f"metadata.name={name}"}


def test_changes_arrive_in_order_with_growing_versions(target: Target, name: str) -> None:
    client, where = target.client, target.path("configmaps")
    start = client.get(where).rv
    with client.watch(where, resourceVersion=start, **one(name)) as watch:
        client.post(where, config_map(name))
        client.patch(f"{where}/{name}", {"data": {"key": "new"}})
        client.delete(f"{where}/{name}")
        events = watch.take(3)
    assert [event["type"] for event in events] == ["ADDED", "MODIFIED", "DELETED"]
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in events]
    assert versions == sorted(set(versions))
    assert events[1]["object"]["data"] == {"key": "new"}
    assert events[2]["object"]["data"] == {"key": "new"}


def test_a_watch_from_a_version_replays_what_came_after_it(target: Target, name: str) -> None:
    client, where = target.client, target.path("configmaps")
    made = client.post(where, config_map(name))
    client.patch(f"{where}/{name}", {"data": {"key": "2"}})
    client.patch(f"{where}/{name}", {"data": {"key": "3"}})
    with client.watch(where, resourceVersion=made.rv, **one(name)) as watch:
        events = watch.take(2)
    assert [event["object"]["data"]["key"] for event in events] == ["2", "3"]


def test_a_watch_without_a_version_begins_with_what_is_there(target: Target, name: str) -> None:
    client, where = target.client, target.path("configmaps")
    client.post(where, config_map(name))
    with client.watch(where, **one(name)) as watch:
        (event,) = watch.take(1)
    assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", name)


def test_an_object_that_begins_or_ceases_to_match_comes_or_goes(target: Target, name: str) -> None:
    client, where = target.client, target.path("configmaps")
    start = client.get(where).rv
    with client.watch(where, resourceVersion=start, labelSelector=f"watched={name}") as watch:
        client.post(where, config_map(name))
        client.patch(f"{where}/{name}", {"metadata": {"labels": {"watched": name}}}, MERGE)
        client.patch(f"{where}/{name}", {"data": {"key": "2"}}, MERGE)
        client.patch(f"{where}/{name}", {"metadata": {"labels": {"watched": None}}}, MERGE)
        client.delete(f"{where}/{name}")
        client.post(where, config_map(f"{name}-end", labels={"watched": name}))
        events = watch.take(4)
    kinds = [(event["type"], event["object"]["metadata"]["name"]) for event in events]
    assert kinds == [
        ("ADDED", name),
        ("MODIFIED", name),
        ("DELETED", name),
        ("ADDED", f"{name}-end"),
    ]


def test_bookmarks_come_only_when_they_are_wanted(target: Target, name: str) -> None:
    client, where = target.client, target.path("configmaps")
    start = client.get(where).rv
    query: dict[str, Any] = {"resourceVersion": start, "timeoutSeconds": 3}
    with client.watch(where, allowWatchBookmarks="true", **query) as watch:
        client.post(where, config_map(name))
        events = list(watch)
    marks = [event for event in events if event["type"] == "BOOKMARK"]
    assert marks
    assert marks[-1]["object"]["kind"] == "ConfigMap"
    assert int(marks[-1]["object"]["metadata"]["resourceVersion"]) >= int(start)


def test_a_watch_ends_by_itself_at_its_timeout(target: Target) -> None:
    client, where = target.client, target.path("secrets")
    start = client.get(where).rv
    with client.watch(where, resourceVersion=start, timeoutSeconds=1) as watch:
        assert watch.code == 200
        assert list(watch) == []


@pytest.fixture
def young(target: Target) -> Iterator[str]:
    """The path of a resource of which the server remembers nothing of long ago.

    The real server's memory of a built-in one reaches back to its own start.
    """
    if not target.is_real:
        yield target.path("secrets")
        return
    group = f"{target.namespace}.engine.test"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True}
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget"}
    versions = [{**version, "schema": {"openAPIV3Schema": schema}}]
    spec = {"group": group, "scope": "Namespaced", "names": names, "versions": versions}
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    made = target.client.post(definitions, {"metadata": {"name": f"widgets.{group}"}, "spec": spec})
    assert made.code == 201, made.body
    where = f"/apis/{group}/v1/namespaces/{target.namespace}/widgets"
    eventually(lambda: target.client.get(where).code == 200)
    yield where
    target.client.delete(f"{definitions}/widgets.{group}")


def test_a_compacted_version_is_expired(target: Target, young: str) -> None:
    with target.client.watch(young, resourceVersion="1", timeoutSeconds=2) as watch:
        (event,) = watch.take(1)
    assert event["type"] == "ERROR"
    assert event["object"]["code"] == 410
    assert event["object"]["reason"] in ("Expired", "Gone")
    assert "too old resource version" in event["object"]["message"]


def test_a_version_that_is_no_number_is_a_bad_request(target: Target) -> None:
    got = target.client.get(target.path("configmaps"), watch="true", resourceVersion="nonsense")
    assert got.code in (400, 500)
    assert "resourceVersion" in got.message


def test_metadata_only_events(target: Target, name: str) -> None:
    client, where = target.client, target.path("configmaps")
    start = client.get(where).rv
    with client.watch(where, accept=METADATA, resourceVersion=start, **one(name)) as watch:
        client.post(where, config_map(name))
        (event,) = watch.take(1)
    assert event["object"]["kind"] == "PartialObjectMetadata"
    assert "data" not in event["object"]
