import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.decide.record import Attempt, Record, record_from_data, record_to_data
from engine.refs import JobKey
from engine.status.outcome import Reason, State
from tests.unit.decide.situations import JOB, NOW, attempt, finished, record
from tests.unit.decide.strategies import JOBS, records


def is_written(record: Record) -> bool:
    """Whether the engine writes such a record: only 0.1 queued an attempt without a pod."""
    return record.state is not State.QUEUED or all(a.uid or a.outcome for a in record.attempts)


@given(st.sampled_from(JOBS).flatmap(records).filter(is_written))
def test_a_record_survives_being_written_and_read(written: Record) -> None:
    data = json.loads(json.dumps(record_to_data(written)))
    assert record_from_data(written.key, data, written.version) == written


def test_what_is_empty_is_not_written() -> None:
    fresh = Record(JobKey("ci", "build"), "default", "a" * 64)
    assert record_to_data(fresh) == {
        "source": "default",
        "specHash": "a" * 64,
        "state": "Queued",
    }


def test_an_exit_code_of_zero_is_written() -> None:
    assert record_to_data(finished())["exitCode"] == 0


def test_times_are_utc_with_milliseconds() -> None:
    data = record_to_data(record(Attempt(1, "build-1", claimed_at=NOW)))
    assert data["attempts"][0]["claimedAt"] == "2026-01-01T12:00:20.000Z"


@pytest.mark.parametrize(
    "data", [{}, {"source": "a"}, {"source": "a", "specHash": "b", "state": "Odd"}]
)
def test_what_is_no_record_is_refused(data: dict[str, str]) -> None:
    with pytest.raises((KeyError, ValueError, TypeError)):
        record_from_data(JobKey("ci", "build"), data, "")


def test_the_last_attempt_is_open_until_it_has_an_outcome() -> None:
    closed = attempt(outcome=Reason.EVICTED)
    assert record(closed).open_attempt is None
    assert record(closed, attempt(2)).open_attempt == attempt(2)
    assert record().open_attempt is None


def test_an_attempt_takes_the_place_of_the_one_with_its_number() -> None:
    known = record(attempt(1), attempt(2))
    changed = known.with_attempt(attempt(2, message="x"))
    assert [a.message for a in changed.attempts] == ["", "x"]


def test_a_new_run_keeps_the_version_it_replaces() -> None:
    new = finished().next_run("b" * 64)
    assert (new.version, new.state, new.attempts) == ("7", State.QUEUED, ())
    assert new.history[0].run == JOB.run


def test_a_spec_that_was_changed_and_changed_back_goes_on_counting() -> None:
    first = finished()
    other = first.next_run("b" * 64)
    assert other.next_number == 1
    back = other.next_run(first.spec_hash)
    assert back.next_number == first.next_number
    again = record_from_data(back.key, record_to_data(back), "")
    assert again.next_run("c" * 64).next_run(first.spec_hash).next_number == first.next_number
