"""Several engines share the jobs of a source: seen from each of them, on both API servers."""

from __future__ import annotations

import time

import pytest

from engine.errors import ForbiddenError
from engine.runtime.lease import lease_name, owner
from tests.component.leader.conftest import (
    LEASES,
    SOURCE,
    Candidate,
    Candidates,
    Target,
    eventually,
    owners,
    shared,
)


@pytest.mark.real
def test_each_job_is_one_engines_and_one_that_ends_leaves_its_jobs_to_the_others(
    place: Target, candidate: Candidates
) -> None:
    engines = [candidate(name, shares=True, duration=3.0).start() for name in ("a", "b", "c")]
    eventually(lambda: shared(engines))
    leases = {lease["metadata"]["name"] for lease in place.api.list(LEASES, place.namespace)}
    assert leases == {lease_name(SOURCE, number) for number in range(3)}
    before = owners(engines)
    engines[0].stop()
    eventually(lambda: shared(engines[1:]))
    after = owners(engines)
    moved = {key for key in before if before[key] != after[key]}
    assert moved == {key for key, names in before.items() if names == ["a"]}
    assert engines[1].said[-1] == 'source "team-web" is shared by 2 engines: b, c'


@pytest.mark.real
def test_the_jobs_of_an_engine_that_is_killed_are_taken_over_within_its_lease(
    candidate: Candidates,
) -> None:
    first, second = (candidate(name, shares=True, duration=3.0).lead() for name in ("a", "b"))
    eventually(lambda: shared([first, second]))
    first.die()
    began = time.monotonic()
    eventually(lambda: owners([second]) == {key: ["b"] for key in owners([second])})
    assert time.monotonic() - began < 20.0
    assert second.said[-1] == 'source "team-web" is this engine\'s alone'


def test_a_newcomer_owns_nothing_before_the_others_have_seen_it(candidate: Candidates) -> None:
    first = candidate("a", shares=True, duration=3.0).lead()
    eventually(lambda: first.elector.owns("x"))
    second = candidate("b", shares=True, duration=3.0).lead()
    assert not any(owners([second]).values())
    eventually(lambda: shared([first, second]))


def test_an_engine_that_does_not_share_ends_beside_one_that_does(candidate: Candidates) -> None:
    candidate("a", shares=True, duration=3.0).lead()
    with pytest.raises(Exception, match="held by another engine: a"):
        candidate("b", duration=3.0).lead()


@pytest.mark.parametrize(
    "forged",
    [
        {"leaseDurationSeconds": 2147483647, "leaseTransitions": 2147483647},
        {"leaseDurationSeconds": None, "renewTime": None, "acquireTime": None},
    ],
)
def test_a_lease_that_nobody_holds_keeps_its_jobs_waiting_no_longer_than_ones_own(
    place: Target, candidate: Candidates, forged: dict[str, int | None]
) -> None:
    candidate("one").lead().die()
    lease = place.lease()
    lease["spec"] |= {"holderIdentity": "ghost", **forged}
    place.api.replace(LEASES, lease, place.namespace)
    second = candidate("two", shares=True, duration=2.0).lead()
    eventually(lambda: owners([second]) == {key: ["two"] for key in owners([second])}, 30.0)


def test_a_lease_that_is_deleted_under_its_holder_moves_no_job(
    place: Target, candidate: Candidates
) -> None:
    first, second = (candidate(name, shares=True, duration=6.0).lead() for name in ("a", "b"))
    eventually(lambda: shared([first, second]))
    before = owners([second])
    for _ in range(3):
        place.api.delete(LEASES, "engine-team-web", place.namespace)
        eventually(lambda: place.api.find(LEASES, "engine-team-web", place.namespace))
        assert owners([second]) == before
    assert first.changes == [True]


def test_a_lease_whose_labels_were_removed_is_found_and_gets_them_again(
    place: Target, candidate: Candidates
) -> None:
    candidate("one").lead().die()
    lease = place.lease()
    lease["metadata"]["labels"] = {}
    place.api.replace(LEASES, lease, place.namespace)
    candidate("two").lead()
    assert place.lease()["metadata"]["labels"]["jobs.engine/source"] == SOURCE


def test_the_lease_of_one_that_is_long_gone_is_used_again(
    place: Target, candidate: Candidates
) -> None:
    def engine(name: str) -> Candidate:
        return candidate(name, shares=True, duration=0.5)

    for name in ("a", "b", "c"):
        engine(name).lead().die()
        time.sleep(1.5)
    assert len(place.api.list(LEASES, place.namespace)) <= 2


@pytest.mark.parametrize("shares", [True, False])
def test_without_the_right_to_leases_no_engine_holds_one(
    place: Target, candidate: Candidates, shares: bool
) -> None:
    with pytest.raises(ForbiddenError, match="cannot list resource") as refused:
        candidate("one", shares=shares, kubeconfig=place.without_rights()).lead()
    assert "list, create and update on leases" in refused.value.hint


def test_no_key_moves_but_those_of_who_comes_or_goes() -> None:
    keys = [f"ci/job-{number}" for number in range(1000)]
    three = {key: owner(key, (0, 1, 2)) for key in keys}
    two = {key: owner(key, (0, 2)) for key in keys}
    assert {key for key in keys if three[key] != two[key]} == {k for k in keys if three[k] == 1}
    shares = [list(three.values()).count(number) for number in range(3)]
    assert min(shares) > 250
    assert owner("ci/job", ()) is None
