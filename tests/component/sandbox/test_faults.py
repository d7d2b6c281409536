"""Faults: each one does what it says, as often as it says, and to nothing else."""

from __future__ import annotations

import time

import pytest

from engine.sandbox import (
    Conflict,
    DropConnection,
    DropWatch,
    ExpireWatch,
    Fault,
    Latency,
    LostReply,
    Refuse,
    Sandbox,
    ServerError,
    TooManyRequests,
)
from engine.sandbox.furnishing import ROOT_CERTIFICATE
from tests.support.http import Reply
from tests.support.sandbox_namespace import Namespace

LOST = OSError


def make(ci: Namespace, name: str) -> Reply:
    return ci.client.post(ci.path("configmaps"), {"metadata": {"name": name}})


def test_too_many_requests_says_when_to_come_back(ci: Namespace, sandbox: Sandbox) -> None:
    sandbox.faults.add(Fault(TooManyRequests(retry_after=7), verb="create"))
    got = make(ci, "a")
    assert (got.code, got.reason, got.headers["Retry-After"]) == (429, "TooManyRequests", "7")
    assert got.body["details"]["retryAfterSeconds"] == 7
    assert make(ci, "a").code == 201


@pytest.mark.parametrize("code", [500, 503])
def test_a_server_error_does_nothing(ci: Namespace, sandbox: Sandbox, code: int) -> None:
    sandbox.faults.add(Fault(ServerError(code), verb="create", resource="configmaps"))
    assert make(ci, "a").code == code
    assert ci.client.get(ci.path("configmaps", "a")).code == 404


def test_a_lost_reply_has_done_its_work(ci: Namespace, sandbox: Sandbox) -> None:
    sandbox.faults.add(Fault(LostReply(), verb="create", resource="configmaps"))
    with pytest.raises(LOST):
        make(ci, "a")
    again = make(ci, "a")
    assert (again.code, again.reason) == (409, "AlreadyExists")


def test_an_error_in_place_of_the_reply_has_done_its_work_too(
    ci: Namespace, sandbox: Sandbox
) -> None:
    sandbox.faults.add(Fault(LostReply(504), verb="create", resource="configmaps"))
    got = make(ci, "a")
    assert (got.code, got.message) == (504, "etcdserver: request timed out")
    assert make(ci, "a").code == 409


def test_a_dropped_connection_has_done_nothing(ci: Namespace, sandbox: Sandbox) -> None:
    sandbox.faults.add(Fault(DropConnection(), verb="create"))
    with pytest.raises(LOST):
        make(ci, "a")
    assert make(ci, "a").code == 201


def test_a_conflict_that_nobody_caused(ci: Namespace, sandbox: Sandbox) -> None:
    made = make(ci, "a")
    sandbox.faults.add(Fault(Conflict(), verb="patch", resource="configmaps"))
    got = ci.client.patch(ci.path("configmaps", "a"), {"data": {"a": "1"}})
    assert (got.code, got.reason) == (409, "Conflict")
    assert ci.client.get(ci.path("configmaps", "a")).rv == made.rv


def test_any_refusal_can_be_told(ci: Namespace, sandbox: Sandbox) -> None:
    words = 'admission webhook "policy.example" denied the request: no'
    sandbox.faults.add(Fault(Refuse(403, "Forbidden", words), resource="pods"))
    assert ci.start().message == words


def test_a_slow_list_is_slow_and_whole(ci: Namespace, sandbox: Sandbox) -> None:
    make(ci, "a")
    sandbox.faults.add(Fault(Latency(0.3), verb="list", resource="configmaps"))
    before = time.monotonic()
    got = ci.client.get(ci.path("configmaps"))
    assert time.monotonic() - before >= 0.3
    assert got.names == ["a", ROOT_CERTIFICATE]


def test_a_watch_is_cut_off_after_some_events(ci: Namespace, sandbox: Sandbox) -> None:
    sandbox.faults.add(Fault(DropWatch(after_events=2), verb="watch"))
    start = ci.client.get(ci.path("configmaps")).rv
    with ci.client.watch(ci.path("configmaps"), resourceVersion=start) as watch:
        for name in ("a", "b", "c"):
            make(ci, name)
        assert len(list(watch)) == 2


def test_a_watch_can_begin_expired(ci: Namespace, sandbox: Sandbox) -> None:
    sandbox.faults.add(Fault(ExpireWatch(), verb="watch", resource="configmaps"))
    start = ci.client.get(ci.path("configmaps")).rv
    with ci.client.watch(ci.path("configmaps"), resourceVersion=start) as watch:
        (event,) = list(watch)
    assert (event["type"], event["object"]["code"]) == ("ERROR", 410)


def test_open_watches_can_be_dropped_or_expired(ci: Namespace, sandbox: Sandbox) -> None:
    start = ci.client.get(ci.path("configmaps")).rv
    with ci.client.watch(ci.path("configmaps"), resourceVersion=start) as watch:
        sandbox.drop_watches("configmaps")
        assert list(watch) == []
    make(ci, "later")
    now = ci.client.get(ci.path("configmaps")).rv
    with ci.client.watch(ci.path("configmaps"), resourceVersion=now) as watch:
        sandbox.expire_watches("configmaps")
        (event,) = list(watch)
    assert event["object"]["reason"] == "Expired"
    with ci.client.watch(ci.path("configmaps"), resourceVersion=start) as watch:
        (event,) = list(watch)
    assert event["object"]["code"] == 410


def test_pages_expire_when_their_version_is_compacted(ci: Namespace, sandbox: Sandbox) -> None:
    for name in ("a", "b", "c"):
        make(ci, name)
    first = ci.client.get(ci.path("configmaps"), limit=1)
    sandbox.compact()
    token = first.body["metadata"]["continue"]
    got = ci.client.get(ci.path("configmaps"), **{"limit": 1, "continue": token})
    assert (got.code, got.reason) == (410, "Expired")
    assert "The provided continue parameter is too old" in got.message


def test_a_fault_skips_then_strikes_then_is_used_up(ci: Namespace, sandbox: Sandbox) -> None:
    fault = sandbox.faults.add(Fault(ServerError(), verb="create", skip=1, times=2))
    assert [make(ci, name).code for name in "abcd"] == [201, 500, 500, 201]
    assert sandbox.faults.hits(fault) == 2


def test_a_fault_is_for_the_names_and_namespaces_it_names(ci: Namespace, sandbox: Sandbox) -> None:
    sandbox.faults.add(Fault(ServerError(), name="bad-*", namespace="ci", times=None))
    assert make(ci, "good-1").code == 201
    assert make(ci, "bad-1").code == 500
    elsewhere = "/api/v1/namespaces/default/configmaps"
    assert ci.client.post(elsewhere, {"metadata": {"name": "bad-1"}}).code == 201


def test_chance_is_the_same_for_the_same_seed() -> None:
    def codes(seed: int) -> list[int]:
        with Sandbox(seed=seed) as sandbox:
            place = Namespace.of(sandbox)
            sandbox.faults.add(Fault(ServerError(), verb="create", times=None, probability=0.5))
            return [make(place, f"a-{number}").code for number in range(20)]

    first = codes(1)
    assert first == codes(1)
    assert {201, 500} == set(first)
    assert first != codes(2)


def test_faults_can_be_taken_back(ci: Namespace, sandbox: Sandbox) -> None:
    fault = sandbox.faults.add(Fault(ServerError(), times=None))
    assert make(ci, "a").code == 500
    sandbox.faults.remove(fault)
    assert make(ci, "a").code == 201
