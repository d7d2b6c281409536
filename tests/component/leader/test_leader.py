"""One engine at a time acts for a source: seen from two engines, on both API servers."""

from __future__ import annotations

import re
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from engine.cluster.connect import connect
from engine.errors import ExitCode, NotFoundError, OwnershipError
from engine.runtime.membership import LeaseLock
from tests.component.leader.conftest import (
    LEASES,
    SOURCE,
    Candidates,
    Target,
    eventually,
)


def test_the_lease_tells_who_holds_it_and_carries_no_ttl(
    place: Target, candidate: Candidates
) -> None:
    candidate("one", duration=1.5).lead()
    lease = place.lease()
    assert lease["metadata"]["name"] == "engine-team-web"
    assert lease["metadata"]["labels"] == {
        "app.kubernetes.io/managed-by": "engine",
        "jobs.engine/source": SOURCE,
    }
    assert not lease["metadata"].get("annotations")
    spec = lease["spec"]
    assert (spec["holderIdentity"], spec["leaseDurationSeconds"]) == ("one", 2)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", spec["renewTime"])
    assert spec["acquireTime"] == spec["renewTime"]


@pytest.mark.real
def test_a_second_engine_is_refused_and_told_who_is_first(candidate: Candidates) -> None:
    first = candidate("one", duration=3.0).lead()
    second = candidate("two", duration=3.0)
    with pytest.raises(OwnershipError) as refused:
        second.lead()
    assert refused.value.exit_code == ExitCode.REFUSED
    assert all(words in str(refused.value) for words in (SOURCE, "one", "--leader-elect"))
    assert (second.elector.is_member, second.elector.holder) == (False, "one")
    assert first.elector.is_member


def test_a_second_engine_is_refused_as_soon_as_the_first_renews(candidate: Candidates) -> None:
    candidate("one", duration=9.0).lead()
    began = time.monotonic()
    with pytest.raises(OwnershipError):
        candidate("two", duration=9.0).lead()
    assert time.monotonic() - began < 8.0


@pytest.mark.real
def test_the_lease_of_an_engine_that_died_is_taken_over(
    place: Target, candidate: Candidates
) -> None:
    first, second = candidate("one").lead(), candidate("two")
    eventually(lambda: place.spec()["renewTime"] != place.spec()["acquireTime"])
    first.die()
    second.lead()
    assert not first.elector.is_member
    assert (second.elector.is_member, second.elector.holder) == (True, "two")
    assert second.hears("was last held by one")
    assert second.hears("over from one")
    assert place.spec()["holderIdentity"] == "two"


@pytest.mark.real
def test_a_lease_that_was_given_up_is_taken_at_once(place: Target, candidate: Candidates) -> None:
    first, second = candidate("one", duration=30.0).lead(), candidate("two", duration=30.0)
    first.stop()
    assert (first.elector.is_member, first.elector.holder) == (False, "")
    assert place.spec().get("holderIdentity", "") == ""
    began = time.monotonic()
    second.lead()
    assert time.monotonic() - began < 20.0
    assert second.said == []
    assert place.spec()["holderIdentity"] == "two"


@pytest.mark.parametrize(("theirs", "ours"), [(1.0, 30.0), (30.0, 1.0)])
def test_the_shorter_of_both_durations_is_waited_for(
    candidate: Candidates, theirs: float, ours: float
) -> None:
    candidate("one", duration=theirs).lead().die()
    second = candidate("two", duration=ours)
    began = time.monotonic()
    second.lead()
    assert 0.9 < time.monotonic() - began < 20.0


@pytest.mark.parametrize("hours", [-5, 5])
def test_clocks_that_differ_do_not_matter(place: Target, candidate: Candidates, hours: int) -> None:
    candidate("one").lead().die()
    other = datetime.now(UTC) + timedelta(hours=hours)
    lease = place.lease()
    lease["spec"]["renewTime"] = other.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    place.api.replace(LEASES, lease, place.namespace)
    second = candidate("two")
    began = time.monotonic()
    second.lead()
    assert 0.9 < time.monotonic() - began < 20.0


@pytest.mark.real
def test_of_many_engines_exactly_one_leads(place: Target, candidate: Candidates) -> None:
    engines = [candidate(f"engine-{number}", duration=3.0) for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        ends = [end.exception() for end in [pool.submit(engine.lead) for engine in engines]]
    assert ends.count(None) == 1
    assert all(isinstance(end, OwnershipError) for end in ends if end is not None)
    winners = [engine for engine in engines if engine.elector.is_member]
    assert [winner.elector.holder for winner in winners] == [place.spec()["holderIdentity"]]


def test_an_api_server_that_is_away_for_a_moment_costs_nothing(candidate: Candidates) -> None:
    first = candidate("one", duration=6.0).lead()
    first.cut.set()
    eventually(lambda: first.hears("can't be renewed"))
    first.cut.clear()
    time.sleep(4.5)
    assert first.elector.is_member
    assert first.changes == [True]


def test_a_holder_that_cannot_renew_pauses_and_goes_on_later(
    place: Target, candidate: Candidates
) -> None:
    first = candidate("one").lead()
    first.cut.set()
    began = time.monotonic()
    eventually(lambda: first.changes == [True, False])
    assert time.monotonic() - began < 15.0
    assert first.elector.is_member is False
    first.cut.clear()
    eventually(lambda: first.changes == [True, False, True])


def test_a_displaced_engine_that_does_not_wait_is_refused(candidate: Candidates) -> None:
    first, second = candidate("one").lead(), candidate("two")
    first.cut.set()
    second.lead()
    first.cut.clear()
    with pytest.raises(OwnershipError, match="two"):
        first.ended()


def test_an_api_server_that_is_away_at_the_start_is_waited_for(candidate: Candidates) -> None:
    first = candidate("one")
    first.cut.set()
    first.start()
    eventually(lambda: first.hears("out of reach: the wire is cut"))
    first.cut.clear()
    eventually(lambda: first.elector.is_member)
    assert len(first.said) == 1


def test_giving_up_without_an_api_server_takes_two_seconds_at_most(candidate: Candidates) -> None:
    first = candidate("one").lead()
    first.cut.set()
    began = time.monotonic()
    first.stop()
    assert time.monotonic() - began < 20.0
    assert not first.elector.is_member


def test_giving_up_stops_the_renewal(place: Target, candidate: Candidates) -> None:
    first = candidate("one").lead()
    first.stop()
    version = place.lease()["metadata"]["resourceVersion"]
    time.sleep(1.0)
    assert place.lease()["metadata"]["resourceVersion"] == version
    first.stop()
    assert place.lease()["metadata"]["resourceVersion"] == version


def test_an_engine_that_was_refused_gives_up_nothing(place: Target, candidate: Candidates) -> None:
    candidate("one", duration=3.0).lead()
    second = candidate("two", duration=3.0)
    with pytest.raises(OwnershipError):
        second.lead()
    second.stop()
    assert place.spec()["holderIdentity"] == "one"


def test_a_lease_that_is_deleted_is_made_again(place: Target, candidate: Candidates) -> None:
    first = candidate("one", duration=3.0).lead()
    place.api.delete(LEASES, "engine-team-web", place.namespace)
    eventually(lambda: place.api.find(LEASES, "engine-team-web", place.namespace))
    assert place.spec()["holderIdentity"] == "one"
    assert first.changes == [True]


def test_what_others_wrote_on_the_lease_stays(place: Target, candidate: Candidates) -> None:
    candidate("one").lead()
    labels = {"metadata": {"labels": {"team": "web"}}}
    path = f"/apis/coordination.k8s.io/v1/namespaces/{place.namespace}/leases/engine-team-web"
    place.api.client.call("PATCH", path, labels, content_type="application/merge-patch+json")
    before = place.spec()["renewTime"]
    eventually(lambda: place.spec()["renewTime"] != before)
    assert place.lease()["metadata"]["labels"]["team"] == "web"


def test_a_namespace_that_is_not_there_is_an_error(place: Target, candidate: Candidates) -> None:
    first = candidate("one")
    first.elector.lock.namespace = "nowhere"
    with pytest.raises(NotFoundError, match="nowhere"):
        first.lead()


@pytest.mark.parametrize(
    "source", ["Web", "web_app", "a..b", "a-.b", "1.2.3", "X" * 63, "web-0123456789"]
)
def test_every_source_has_a_lease(place: Target, candidate: Candidates, source: str) -> None:
    candidate("one", source=source).lead()
    assert place.lease(source)["metadata"]["labels"]["jobs.engine/source"] == source


def test_sources_do_not_disturb_each_other(candidate: Candidates) -> None:
    leaders = [
        candidate("one", source="web").lead(),
        candidate("two", source="Web").lead(),
        candidate("three", source="WEB").lead(),
    ]
    eventually(lambda: all(leader.elector.is_member for leader in leaders))


def test_no_two_engines_have_one_identity(place: Target) -> None:
    client = connect(str(place.kubeconfig)).client
    one, two = (LeaseLock(client, "ci", SOURCE, 15.0).identity for _ in range(2))
    assert one != two
    assert re.fullmatch(r".+_\d+_[0-9a-f]{8}", one)
