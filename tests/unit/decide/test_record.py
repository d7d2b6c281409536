from engine.decide.record import Record
from engine.decide.record_codec import decode_record, encode_record
from engine.status.outcome import Reason, State
from tests.unit.decide.situations import JOB, attempt, finished, record


def stored(record: Record) -> Record:
    return decode_record(record.key, encode_record(record), "8")


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
    again = stored(back).next_run("c" * 64).next_run(first.spec_hash)
    assert again.next_number == first.next_number
