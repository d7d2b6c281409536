"""ResourceQuota: refusals in the server's words, scopes, and what is counted."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.contract.conftest import Target
from tests.contract.objects import pod
from tests.support.client import MERGE, Obj, eventually
from tests.support.http import Reply


@pytest.fixture
def place(target: Target) -> Iterator[Target]:
    """A namespace of the test's own."""
    name = f"quota-{uuid.uuid4().hex[:8]}"
    target.client.post("/api/v1/namespaces", {"metadata": {"name": name}})
    yield replace(target, namespace=name)
    target.client.delete(f"/api/v1/namespaces/{name}")


def limit(place: Target, scopes: list[str] | None = None, /, **hard: str) -> None:
    """Make a quota and wait until the server enforces it."""
    spec: Obj = {"hard": hard}
    if scopes:
        spec["scopes"] = scopes
    body = {"metadata": {"name": "q"}, "spec": spec}
    assert place.client.post(place.path("resourcequotas"), body).code == 201
    eventually(lambda: used(place).keys() == hard.keys())


def used(place: Target) -> dict[str, str]:
    status = place.client.get(place.path("resourcequotas", "q")).body.get("status", {})
    return dict(status.get("used", {}))


def start(place: Target, name: str, **spec: object) -> Reply:
    return place.client.post(place.path("pods"), pod(name, **spec))


def sized(**requests: str) -> list[Obj]:
    resources = {"requests": requests}
    return [{"name": "main", "image": "registry.invalid/tool:1", "resources": resources}]


def test_a_pod_over_the_quota_is_refused_in_its_words(place: Target) -> None:
    limit(place, pods="1")
    assert start(place, "first").code == 201
    got = start(place, "second")
    assert (got.code, got.reason) == (403, "Forbidden")
    assert got.message == (
        'pods "second" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, '
        "limited: pods=1"
    )
    assert got.body["details"] == {"name": "second", "kind": "pods"}


def test_a_quota_of_nothing_lets_nothing_in(place: Target) -> None:
    limit(place, pods="0")
    assert start(place, "x").message == (
        'pods "x" is forbidden: exceeded quota: q, requested: pods=1, used: pods=0, limited: pods=0'
    )


def test_used_is_told_in_the_status(place: Target) -> None:
    limit(place, pods="3")
    start(place, "a")
    assert used(place) == {"pods": "1"}


def test_room_is_made_by_a_deletion(place: Target) -> None:
    limit(place, pods="1")
    start(place, "first")
    place.client.delete(place.path("pods", "first"))
    eventually(lambda: start(place, "second").code == 201)


def test_a_finished_pod_no_longer_counts(place: Target) -> None:
    limit(place, pods="1")
    start(place, "first")
    ended = {"status": {"phase": "Succeeded"}}
    assert place.client.patch(place.path("pods", "first", "status"), ended, MERGE).code == 200
    eventually(lambda: start(place, "second").code == 201)


def test_a_finished_pod_still_counts_as_an_object(place: Target) -> None:
    limit(place, **{"count/pods": "1"})
    start(place, "first")
    place.client.patch(
        place.path("pods", "first", "status"), {"status": {"phase": "Failed"}}, MERGE
    )
    assert start(place, "second").message == (
        'pods "second" is forbidden: exceeded quota: q, requested: count/pods=1, '
        "used: count/pods=1, limited: count/pods=1"
    )


def test_cpu_and_memory_are_added_up(place: Target) -> None:
    limit(place, **{"requests.cpu": "1", "requests.memory": "1Gi"})
    assert start(place, "a", containers=sized(cpu="600m", memory="512Mi")).code == 201
    assert used(place) == {"requests.cpu": "600m", "requests.memory": "512Mi"}
    got = start(place, "b", containers=sized(cpu="500m", memory="768Mi"))
    assert got.message == (
        'pods "b" is forbidden: exceeded quota: q, requested: requests.cpu=500m,'
        "requests.memory=768Mi, used: requests.cpu=600m,requests.memory=512Mi, "
        "limited: requests.cpu=1,requests.memory=1Gi"
    )
    got = start(place, "c", containers=sized(cpu="500m", memory="512Mi"))
    assert got.message == (
        'pods "c" is forbidden: exceeded quota: q, requested: requests.cpu=500m, '
        "used: requests.cpu=600m, limited: requests.cpu=1"
    )


def test_a_pod_has_to_say_what_a_quota_counts(place: Target) -> None:
    limit(place, **{"limits.cpu": "1", "requests.memory": "1Gi"})
    got = start(place, "silent")
    assert got.code == 403
    assert got.message.startswith('pods "silent" is forbidden: failed quota: q: must specify ')
    assert "limits.cpu" in got.message
    assert "requests.memory" in got.message


@pytest.mark.parametrize(
    ("scope", "caught", "free"),
    [
        ("Terminating", {"activeDeadlineSeconds": 60}, {}),
        ("NotTerminating", {}, {"activeDeadlineSeconds": 60}),
        ("BestEffort", {}, {"containers": sized(cpu="100m")}),
        ("NotBestEffort", {"containers": sized(cpu="100m")}, {}),
    ],
)
def test_a_scope_catches_only_its_pods(place: Target, scope: str, caught: Obj, free: Obj) -> None:
    limit(place, [scope], pods="0")
    assert start(place, "caught", **caught).code == 403
    assert start(place, "free", **free).code == 201


def settled(place: Target, resource: str) -> Reply | None:
    """The answer to a create, once every part of the server has heard of the new quota."""
    got = place.client.post(place.path(resource), {"metadata": {"name": "one"}})
    if got.code == 201:
        place.client.delete(place.path(resource, "one"))
        return None
    unsettled = got.reason == "Conflict" or "status unknown for quota" in got.message
    return None if unsettled else got


def test_secrets_and_config_maps_are_counted(place: Target) -> None:
    limit(place, configmaps="0", secrets="0")
    for resource in ("configmaps", "secrets"):
        got = eventually(lambda resource=resource: settled(place, resource))  # type: ignore[misc]
        assert (got.code, got.reason) == (403, "Forbidden")
        assert got.message.startswith(
            f'{resource} "one" is forbidden: exceeded quota: q, requested: {resource}=1, used: '
        )


def test_a_dry_run_is_refused_too_and_charges_nothing(place: Target) -> None:
    limit(place, pods="1")
    assert place.client.post(place.path("pods"), pod("a"), dryRun="All").code == 201
    assert used(place) == {"pods": "0"}
    start(place, "a")
    assert place.client.post(place.path("pods"), pod("b"), dryRun="All").code == 403


def test_a_name_that_exists_is_over_quota_first(place: Target) -> None:
    limit(place, pods="1")
    start(place, "a")
    assert start(place, "a").code == 403


def test_a_raised_quota_lets_the_next_one_in(place: Target) -> None:
    limit(place, pods="0")
    assert start(place, "a").code == 403
    place.client.patch(place.path("resourcequotas", "q"), {"spec": {"hard": {"pods": "1"}}}, MERGE)
    eventually(lambda: start(place, "a").code == 201)
