"""What goes wrong on the way to the server, which only the sandbox does on demand."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.sandbox import (
    Conflict,
    DropConnection,
    Fault,
    Latency,
    LostReply,
    Sandbox,
    ServerError,
)
from tests.component.leader.conftest import (
    LEASES,
    Candidate,
    Candidates,
    Target,
    eventually,
    sandbox_place,
)


@pytest.fixture
def place(sandbox: Sandbox, tmp_path: Path) -> Target:
    return sandbox_place(sandbox, tmp_path)


@pytest.fixture
def candidate(place: Target) -> Iterator[Candidates]:
    candidates = Candidates(place)
    yield candidates
    for made in candidates.made:
        made.die()


def hit(sandbox: Sandbox, effect: object, verb: str, times: int | None = 1) -> Fault:
    return sandbox.faults.add(Fault(effect, verb=verb, resource="leases", times=times))  # type: ignore[arg-type]


def renewed(sandbox: Sandbox, leader: Candidate, times: int) -> bool:
    updates = [entry for entry in sandbox.requests.where("update", "leases") if entry.code == 200]
    return leader.elector.is_member and len(updates) >= times


def test_an_idle_engine_writes_once_every_third_of_the_duration(
    sandbox: Sandbox, candidate: Candidates
) -> None:
    candidate("one", duration=1.5).lead()
    began = time.monotonic()
    sandbox.requests.clear()
    time.sleep(2.2)
    eventually(lambda: len(sandbox.requests) >= 4)
    asked = [(entry.verb, entry.resource) for entry in sandbox.requests]
    assert len(asked) <= 2 * ((time.monotonic() - began) / 0.5 + 1)
    assert set(asked) == {("list", "leases"), ("update", "leases")}


@pytest.mark.parametrize("verb", ["list", "create"])
@pytest.mark.parametrize("effect", [LostReply(), DropConnection(), ServerError(503), Conflict()])
def test_one_failure_at_the_start_is_overcome(
    sandbox: Sandbox, candidate: Candidates, verb: str, effect: object
) -> None:
    fault = hit(sandbox, effect, verb)
    first = candidate("one").lead()
    assert sandbox.faults.hits(fault) == 1
    assert first.elector.is_member
    assert first.said == []


@pytest.mark.parametrize("effect", [LostReply(), DropConnection(), ServerError(500), Conflict()])
def test_one_failed_renewal_is_made_good(
    sandbox: Sandbox, candidate: Candidates, effect: object
) -> None:
    first = candidate("one", duration=3.0).lead()
    fault = hit(sandbox, effect, "update")
    eventually(lambda: sandbox.faults.hits(fault))
    sandbox.requests.clear()
    eventually(lambda: renewed(sandbox, first, 3))
    assert first.said == []
    assert first.changes == [True]


def test_an_answer_that_does_not_come_is_not_waited_for_longer_than_it_holds(
    sandbox: Sandbox, candidate: Candidates
) -> None:
    first = candidate("one", duration=1.5).lead()
    fault = hit(sandbox, Latency(30.0), "update")
    eventually(lambda: sandbox.faults.hits(fault))
    began = time.monotonic()
    eventually(lambda: first.changes == [True, False])
    assert time.monotonic() - began < 20
    eventually(lambda: first.changes == [True, False, True])


def test_giving_up_does_not_wait_for_a_slow_server(sandbox: Sandbox, candidate: Candidates) -> None:
    first = candidate("one").lead()
    hit(sandbox, Latency(30.0), "list")
    began = time.monotonic()
    first.stop()
    assert 1.5 < time.monotonic() - began < 20


def test_giving_up_gets_over_one_failure(
    sandbox: Sandbox, place: Target, candidate: Candidates
) -> None:
    first = candidate("one", duration=30.0).lead()
    hit(sandbox, Conflict(), "update")
    first.stop()
    assert place.spec()["holderIdentity"] == ""


def test_a_deletion_and_a_lost_reply_together_cost_nothing(
    sandbox: Sandbox, place: Target, candidate: Candidates
) -> None:
    first = candidate("one", duration=3.0).lead()
    hit(sandbox, LostReply(), "create")
    place.api.delete(LEASES, "engine-team-web", "ci")
    sandbox.requests.clear()
    eventually(lambda: renewed(sandbox, first, 2))
    assert first.changes == [True]


def test_a_right_that_is_taken_away_later_ends_the_hold(
    sandbox: Sandbox, candidate: Candidates
) -> None:
    first = candidate("one").lead()
    denial = sandbox.deny("update", "leases")
    eventually(lambda: first.changes == [True, False])
    assert first.hears("can't be renewed")
    sandbox.allow(denial)
    eventually(lambda: first.changes == [True, False, True])


def test_an_engine_that_may_only_read_leases_still_sees_another(
    sandbox: Sandbox, place: Target, candidate: Candidates, tmp_path: Path
) -> None:
    candidate("one", duration=3.0).lead()
    for verb in ("create", "update"):
        sandbox.deny(verb, "leases", user="reader")
    reader = sandbox.write_kubeconfig(tmp_path / "reader", user="reader")
    second = candidate("two", duration=3.0, kubeconfig=reader)
    with pytest.raises(Exception, match="held by another engine: one"):
        second.lead()


def test_a_renewal_that_is_under_way_takes_nothing_back_that_was_given_up(
    sandbox: Sandbox, place: Target, candidate: Candidates
) -> None:
    first = candidate("one").lead()
    slow = hit(sandbox, Latency(0.4), "list")
    patch = [{"op": "replace", "path": "/spec/holderIdentity", "value": ""}]
    path = "/apis/coordination.k8s.io/v1/namespaces/ci/leases/engine-team-web"
    place.api.client.call("PATCH", path, patch, content_type="application/json-patch+json")
    eventually(lambda: sandbox.faults.hits(slow))
    first.stop()
    time.sleep(0.6)
    assert place.spec()["holderIdentity"] == ""
