"""Logs, the journal, strict validation, watches with their state first."""

from __future__ import annotations

import threading
from itertools import islice
from typing import Any

import pytest

from engine.sandbox import FOREVER, Clock, Run, Sandbox
from tests.support.client import TABLE
from tests.support.sandbox_namespace import Namespace, container


def test_a_log_can_be_cut_to_its_tail(ci: Namespace, sandbox: Sandbox) -> None:
    sandbox.node.will(Run(log=("one", "two", "three")))
    ci.start()
    ci.advance(1)
    assert ci.log(tailLines=2) == "two\nthree\n"
    assert ci.log(tailLines=0) == ""
    first = ci.log(timestamps="true").splitlines()[0]
    stamp, _, text = first.partition(" ")
    assert (stamp[-1], text) == ("Z", "one")


def test_a_log_is_followed_until_the_container_ends(ci: Namespace, sandbox: Sandbox) -> None:
    sandbox.node.will(Run(duration=10, log=("one",)))
    ci.start()
    ci.advance(1)
    got: list[str] = []
    reader = threading.Thread(target=lambda: got.append(ci.log(follow="true")))
    reader.start()
    reader.join(0.3)
    assert reader.is_alive()
    ci.advance(10)
    reader.join(60)
    assert got == ["one\n"]


def test_the_log_of_a_waiting_container_says_what_it_waits_for(
    ci: Namespace, sandbox: Sandbox
) -> None:
    sandbox.images.down("registry.example")
    ci.start()
    got = ci.client.get(ci.path("pods", "job", "log"))
    assert (got.code, got.message) == (
        400,
        'container "main" in pod "job" is waiting to start: ContainerCreating',
    )
    ci.advance(2)
    got = ci.client.get(ci.path("pods", "job", "log"))
    assert got.message == (
        'container "main" in pod "job" is waiting to start: trying and failing to pull image'
    )


def test_every_request_is_noted(ci: Namespace, sandbox: Sandbox) -> None:
    sandbox.requests.clear()
    ci.client.post(ci.path("configmaps"), {"metadata": {"name": "a"}})
    ci.client.post(ci.path("configmaps"), {"metadata": {"name": "b"}}, dryRun="All")
    ci.client.get(ci.path("configmaps"))
    ci.client.get(ci.path("configmaps", "nope"))
    (made, tried, listed, missed) = sandbox.requests
    assert (made.verb, made.resource, made.namespace, made.name, made.code) == (
        "create",
        "configmaps",
        "ci",
        "a",
        201,
    )
    assert made.user_agent == "engine-tests"
    assert [record.name for record in sandbox.requests.writes] == ["a"]
    assert tried.dry_run
    assert (listed.verb, missed.code) == ("list", 404)
    assert sandbox.requests.counts["create", "configmaps"] == 2
    assert sandbox.requests.where("get") == [missed]


def test_what_isnt_about_objects_is_noted_too(ci: Namespace, sandbox: Sandbox) -> None:
    sandbox.requests.clear()
    ci.client.get("/version")
    (noted,) = sandbox.requests
    assert (noted.verb, noted.path, noted.code) == ("get", "/version", 200)


def test_the_version_that_is_told_changes_nothing_else() -> None:
    with Sandbox(clock=Clock(speed=0), version="1.20") as old:
        place = Namespace.of(old)
        assert place.client.get("/version").body["gitVersion"] == "v1.20.0"
        made = place.start(schedulingGates=[{"name": "a.b/c"}])
        assert made.body["spec"]["schedulingGates"] == [{"name": "a.b/c"}]


def test_a_watch_can_begin_with_the_state_and_tell_its_end(ci: Namespace) -> None:
    ci.client.post(ci.path("configmaps"), {"metadata": {"name": "a"}})
    query = {
        "sendInitialEvents": "true",
        "resourceVersionMatch": "NotOlderThan",
        "allowWatchBookmarks": "true",
    }
    with ci.client.watch(ci.path("configmaps"), **query) as watch:
        events = []
        for event in watch:
            events.append(event)
            if event["type"] == "BOOKMARK":
                break
    assert [event["type"] for event in events] == ["ADDED", "ADDED", "BOOKMARK"]
    assert events[-1]["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


def test_bookmarks_come_as_often_as_asked() -> None:
    with Sandbox(bookmark_every=0.1) as sandbox:
        place = Namespace.of(sandbox)
        start = place.client.get(place.path("secrets")).rv
        query: dict[str, Any] = {
            "resourceVersion": start,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": 30,
        }
        with place.client.watch(place.path("secrets"), **query) as watch:
            kinds = [event["type"] for event in islice(watch, 3)]
    assert kinds == ["BOOKMARK"] * 3


def test_a_table_is_watched_with_its_columns_once(ci: Namespace) -> None:
    start = ci.client.get(ci.path("configmaps")).rv
    with ci.client.watch(ci.path("configmaps"), accept=TABLE, resourceVersion=start) as watch:
        ci.client.post(ci.path("configmaps"), {"metadata": {"name": "a"}})
        ci.client.post(ci.path("configmaps"), {"metadata": {"name": "b"}})
        first, second = watch.take(2)
    assert first["object"]["kind"] == "Table"
    assert first["object"]["columnDefinitions"]
    assert second["object"]["columnDefinitions"] is None
    assert second["object"]["rows"][0]["cells"][0] == "b"


@pytest.mark.parametrize(
    ("spec", "state"),
    [
        ({}, "Completed"),
        ({"schedulingGates": [{"name": "a.b/c"}]}, "SchedulingGated"),
        ({"containers": [container(image="nope:1")]}, "ErrImagePull"),
        ({"initContainers": [container("first", "nope:1")]}, "Init:ErrImagePull"),
        ({"initContainers": [container("first", "slow:1")]}, "Init:0/1"),
        ({"containers": [container(image="fails:1")]}, "Error"),
        ({"containers": [container(image="slow:1")], "activeDeadlineSeconds": 1}, "Running"),
    ],
)
def test_the_status_column(
    ci: Namespace, sandbox: Sandbox, spec: dict[str, object], state: str
) -> None:
    sandbox.images.missing("nope:1")
    sandbox.node.will(Run(duration=FOREVER), image="slow:1")
    sandbox.node.will(Run(exit_code=1), image="fails:1")
    ci.start(**spec)
    ci.advance(0.5)
    got = ci.client.get(ci.path("pods", "job"), accept=TABLE)
    assert got.body["rows"][0]["cells"][2] == state


def test_a_quota_set_by_hand_is_enforced_and_told(ci: Namespace, sandbox: Sandbox) -> None:
    sandbox.quota("ci", "q", pods="1")
    assert ci.start("a").code == 201
    assert ci.start("b").code == 403
    assert ci.client.get(ci.path("resourcequotas", "q")).body["status"] == {
        "hard": {"pods": "1"},
        "used": {"pods": "1"},
    }
    sandbox.quota("ci", "q", pods="2")
    assert ci.start("b").code == 201
    ci.advance(1)
    assert ci.client.get(ci.path("resourcequotas", "q")).body["status"]["used"] == {"pods": "0"}


def test_openapi_names_the_options_of_every_write(ci: Namespace) -> None:
    index = ci.client.get("/openapi/v3").body["paths"]
    assert set(index) >= {"api/v1", "apis/coordination.k8s.io/v1"}
    document = ci.client.get(index["api/v1"]["serverRelativeURL"]).body
    patch = document["paths"]["/api/v1/namespaces/{namespace}/pods/{name}"]["patch"]
    assert {"dryRun", "fieldValidation"} <= {option["name"] for option in patch["parameters"]}
    assert ci.client.get("/openapi/v2").code == 404


def test_server_side_apply_is_no_patch_that_it_knows(ci: Namespace) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}
    kind = "application/apply-patch+yaml"
    got = ci.client.patch(ci.path("configmaps", "x"), body, kind, fieldManager="t")
    assert (got.code, got.reason) == (415, "UnsupportedMediaType")
