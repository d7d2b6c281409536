import pytest
from msgspec.structs import replace

from engine.lifecycle.record import MOST_NUMBERS, MOST_RUNS, Record
from engine.lifecycle.record_codec import decode_record, encode_record
from engine.status.outcome import Reason, State
from tests.unit.lifecycle.states import JOB, NOW, attempt, finished, record


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


@pytest.mark.parametrize(("others", "kept"), [(1, 1), (2, 1), (5, 5), (20, 5), (150, MOST_RUNS)])
def test_the_number_of_a_spec_goes_on_however_many_others_came_between(
    others: int, kept: int
) -> None:
    first = finished().with_attempt(attempt(2, outcome=Reason.SUCCEEDED))
    other = first
    for number in range(others):
        other = stored(other.next_run(f"{number:08x}{0:056x}").with_history(kept))
    back = other.next_run(first.spec_hash).with_history(kept)
    assert (back.next_number, len(back.history)) == (3, min(others + 1, kept))
    assert other.next_run("f" * 64).next_number == 1


def test_a_number_that_is_remembered_never_goes_down() -> None:
    first = finished().with_attempt(attempt(7, outcome=Reason.SUCCEEDED))
    forgotten = first.next_run("b" * 64).with_history(0)
    lower = replace(forgotten, history=finished().next_run("b" * 64).history).with_history(0)
    assert lower.next_run(first.spec_hash).next_number == 8


def test_a_record_remembers_the_numbers_of_a_thousand_specs_and_one_for_all_others() -> None:
    first = finished().with_attempt(attempt(7, outcome=Reason.SUCCEEDED))
    other = first
    for number in range(MOST_NUMBERS + MOST_RUNS + 20):
        other = other.next_run(f"{number:08x}{0:056x}")
    other = stored(other)
    assert len(other.numbers) == MOST_NUMBERS
    assert other.next_run(first.spec_hash).next_number == 8
    assert other.next_run("f" * 64).next_number == 8


def test_a_past_run_keeps_its_attempts_outcomes_and_times() -> None:
    first = finished(Reason.SCRIPT_FAILED)
    (past,) = stored(first.next_run("b" * 64)).history
    assert past.attempts == stored(first).attempts
    assert (past.exit_code, past.reason) == (1, Reason.SCRIPT_FAILED)
    assert (past.queued_at, past.finished_at) == (first.queued_at, first.finished_at)


def test_to_cancel_a_rerun_that_has_not_begun_gives_the_run_before_back() -> None:
    before = finished(Reason.SCRIPT_FAILED)
    after = before.again().cancelled("why", NOW)
    assert replace(after, base=before.base) == before
    begun = before.again().with_attempt(attempt(2))
    assert begun.cancelled("why", NOW).state is State.CANCELLED
    changed = before.next_run("b" * 64)
    assert changed.cancelled("why", NOW).state is State.CANCELLED, "or it would start all the same"


def test_a_rerun_of_what_never_had_an_attempt_is_cancelled_as_any_other() -> None:
    done = record().as_completed(JOB.spec_hash, "", "ran elsewhere", NOW)
    assert done.again().cancelled("why", NOW).state is State.CANCELLED


def test_what_is_completed_is_the_revision_that_was_named() -> None:
    waits = record(state=State.QUEUED)
    same = waits.as_completed(JOB.spec_hash, "", "by hand", NOW)
    assert (same.spec_hash, same.history, same.reason) == (JOB.spec_hash, (), Reason.SUCCEEDED)
    for before in (waits, finished(Reason.EVICTED)):
        other = before.as_completed("b" * 64, "", "by hand", NOW)
        assert (other.spec_hash, len(other.history)) == ("b" * 64, 1)
        assert (other.attempts, other.completed) == ((), True)
