"""Who holds a Lease, when it has expired, what is written, and what it is called."""

import re
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.runtime.lease import (
    MAX_DURATION,
    LeaseRecord,
    ObservedLease,
    is_stale,
    lease_name,
    lease_number,
    next_look,
    observe,
    read_lease_record,
    with_holder,
)
from engine.times import micro_time

NOW = datetime(2026, 1, 1, 12, 0, 0, 250_000, tzinfo=UTC)
SUBDOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
SOURCES = st.from_regex(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?", fullmatch=True)
THEIRS = LeaseRecord("two", 10, "2020-01-01T00:00:00.000000Z")


def take(lease: dict[str, Any] | None, duration: float = 15.0) -> dict[str, Any]:
    new = {"metadata": {"name": lease_name("web"), "namespace": "ci"}}
    return with_holder(lease or new, "one", "web", duration, NOW)


def remaining(seen: ObservedLease, now: float) -> float:
    return seen.remaining("one", now, 15.0)


def test_a_lease_without_a_holder_is_free() -> None:
    assert remaining(observe(None, read_lease_record(None), 0.0), 0.0) == 0
    released = {"spec": {"holderIdentity": "", "leaseDurationSeconds": 1}}
    assert remaining(observe(None, read_lease_record(released), 0.0), 0.0) == 0


def test_our_own_name_is_ours_however_old() -> None:
    assert remaining(observe(None, LeaseRecord("one", 1), 0.0), 1e9) == 0


def test_a_holder_is_alive_only_once_it_was_seen_to_write() -> None:
    first = observe(None, THEIRS, 100.0)
    assert (remaining(first, 109.0), first.renewed) == (1.0, False)
    assert observe(first, THEIRS, 105.0) == first
    renewed = observe(first, LeaseRecord("two", 10, "another"), 105.0)
    assert (remaining(renewed, 114.0), renewed.renewed) == (1.0, True)


def test_a_lease_that_appears_while_we_look_is_alive() -> None:
    free = observe(None, read_lease_record(None), 0.0)
    assert observe(free, THEIRS, 0.1).renewed


def test_a_hold_expires_by_our_clock_after_the_holders_own_duration() -> None:
    first = observe(None, THEIRS, 100.0)
    assert remaining(first, 110.0) == 0
    renewed = observe(first, LeaseRecord("two", 10, "another"), 109.0)
    assert remaining(renewed, 110.0) == 9.0
    assert remaining(renewed, 119.0) == 0


def test_no_holder_is_waited_for_longer_than_our_own_lease_lasts() -> None:
    first = observe(None, LeaseRecord("two", 3600), 0.0)
    assert remaining(first, 0.0) == 15.0
    assert remaining(first, 15.0) == 0


def test_our_duration_counts_where_the_lease_says_none() -> None:
    first = observe(None, LeaseRecord("two"), 0.0)
    assert remaining(first, 14.0) == 1.0
    assert remaining(first, 15.0) == 0


@pytest.mark.parametrize(("seconds", "look"), [(15, 1.0), (300, 1.0), (3, 0.2), (1, 0.1)])
def test_looks_are_several_per_renewal(seconds: int, look: float) -> None:
    assert next_look(seconds) == pytest.approx(look)


@pytest.mark.parametrize(
    "lease",
    [
        None,
        {},
        {"spec": None},
        {"spec": {"holderIdentity": None, "leaseDurationSeconds": None}},
        {"spec": {"leaseDurationSeconds": -5}},
        {"spec": {"leaseDurationSeconds": 2147483647}},
        {"spec": {"leaseDurationSeconds": "15"}},
        {"spec": {"leaseDurationSeconds": MAX_DURATION + 1}},
        {"spec": ["holderIdentity"]},
        {"spec": "two"},
    ],
)
def test_a_lease_without_sense_says_nothing(lease: dict[str, Any] | None) -> None:
    assert read_lease_record(lease) == LeaseRecord()


def test_a_ghost_that_would_hold_for_years_holds_no_longer_than_we_would() -> None:
    ghost = {"spec": {"holderIdentity": "ghost", "leaseDurationSeconds": 2147483647}}
    first = observe(None, read_lease_record(ghost), 100.0)
    assert remaining(first, 114.0) == 1.0
    assert remaining(first, 115.0) == 0


def test_a_new_lease_has_everything() -> None:
    assert take(None, duration=0.4) == {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": "engine-web",
            "namespace": "ci",
            "labels": {"app.kubernetes.io/managed-by": "engine", "jobs.engine/source": "web"},
        },
        "spec": {
            "holderIdentity": "one",
            "leaseDurationSeconds": 1,
            "acquireTime": "2026-01-01T12:00:00.250000Z",
            "renewTime": "2026-01-01T12:00:00.250000Z",
        },
    }


def test_a_renewal_keeps_when_it_was_acquired_and_what_others_wrote() -> None:
    lease = take(None)
    lease["metadata"] |= {"resourceVersion": "7", "annotations": {"a": "b"}}
    lease["spec"] |= {"acquireTime": "before", "renewTime": "before", "strategy": "x"}
    again = take(lease)
    assert again["metadata"]["resourceVersion"] == "7"
    assert again["metadata"]["annotations"] == {"a": "b"}
    assert again["spec"] == lease["spec"] | {"renewTime": micro_time(NOW)}
    assert lease["spec"]["renewTime"] == "before", "the object that was read is left as it is"


def test_an_item_of_a_list_is_written_as_an_object() -> None:
    item = take({"metadata": {"name": "engine-web", "resourceVersion": "7"}, "spec": {}})
    assert (item["apiVersion"], item["kind"]) == ("coordination.k8s.io/v1", "Lease")


@pytest.mark.parametrize("former", ["two", ""])
def test_a_change_of_holder_has_its_time(former: str) -> None:
    lease = take(None)
    lease["spec"] |= {"holderIdentity": former, "acquireTime": "before"}
    assert take(lease)["spec"]["acquireTime"] == micro_time(NOW)


def test_giving_up_leaves_no_holder_and_nothing_to_wait_for() -> None:
    lease = with_holder(take(None), "", "web", 1.0, NOW)
    assert remaining(observe(None, read_lease_record(lease), 0.0), 0.0) == 0
    assert lease["spec"]["leaseDurationSeconds"] == 1


@pytest.mark.parametrize("seconds", [0.1, 1.0, 1.01, 14.5])
def test_a_lease_is_good_for_whole_seconds_and_never_for_less_than_we_hold_it(
    seconds: float,
) -> None:
    written = take(None, duration=seconds)["spec"]["leaseDurationSeconds"]
    assert isinstance(written, int)
    assert max(1.0, seconds) <= written < seconds + 1


def test_times_are_written_in_utc_with_microseconds() -> None:
    east = NOW.astimezone(timezone(timedelta(hours=2)))
    assert micro_time(east) == "2026-01-01T12:00:00.250000Z"
    assert micro_time(NOW.replace(microsecond=0)) == "2026-01-01T12:00:00.000000Z"


def test_a_plain_source_is_in_the_name_as_it_is() -> None:
    assert lease_name("web") == "engine-web"
    assert lease_name("web.eu-1") == "engine-web.eu-1"


def test_another_source_is_spelled_otherwise_and_gets_a_hash() -> None:
    assert re.fullmatch("engine-web-app-[0-9a-f]{10}", lease_name("Web_App"))
    assert re.fullmatch("engine-[0-9a-f]{10}", lease_name(""))


@given(SOURCES)
def test_every_source_gives_the_name_of_an_object(source: str) -> None:
    name = lease_name(source)
    assert re.fullmatch(SUBDOMAIN, name)
    assert len(name) <= 253


@given(SOURCES, SOURCES)
def test_two_sources_have_two_leases(one: str, two: str) -> None:
    assert one == two or lease_name(one) != lease_name(two)


@given(SOURCES)
def test_a_source_that_looks_like_the_lease_of_another_is_kept_apart(source: str) -> None:
    lookalike = lease_name(source).removeprefix("engine-")
    assert lookalike == source or lease_name(lookalike) != lease_name(source)


def test_the_leases_of_a_source_are_numbered_and_never_those_of_another() -> None:
    names = {lease_name(source, number) for source in ("web", "web-1") for number in range(9)}
    assert len(names) == 18
    assert lease_number({"metadata": {"name": lease_name("web", 5)}}, "web") == 5
    assert lease_number({"metadata": {"name": lease_name("web", 5)}}, "web-1") is None


def test_a_lease_is_used_again_once_it_is_long_over_by_its_own_words() -> None:
    renewed = LeaseRecord("two", 15, micro_time(NOW - timedelta(seconds=20)))
    assert not is_stale(renewed, NOW, 15.0)
    assert is_stale(renewed, NOW, 5.0)
    assert is_stale(LeaseRecord("two", 15, "never"), NOW, 15.0)
    assert not is_stale(LeaseRecord("two", 15, micro_time(NOW + timedelta(days=9))), NOW, 15.0)
