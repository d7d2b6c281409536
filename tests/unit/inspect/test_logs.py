"""Which pod of a job a log is read from."""

from dataclasses import replace

import pytest

from engine.errors import UsageError
from engine.inspect.logs import LogTarget, log_target
from engine.lifecycle.record import Attempt, Record, RunHistoryEntry
from engine.refs import JobKey
from engine.status.outcome import Reason, State

PAST = RunHistoryEntry("11111111", 2, "old", state=State.FAILED, reason=Reason.SCRIPT_FAILED)
EMPTY = Record(JobKey("ci", "build"), "default", "2" * 64, history=(PAST,))
RECORD = replace(
    EMPTY,
    attempts=(Attempt(1, "build-22222222-1", "a"), Attempt(2, "build-22222222-2", "b")),
)
OLD = LogTarget(2, "build-11111111-2", "old")
FIRST, SECOND = LogTarget(1, "build-22222222-1", "a"), LogTarget(2, "build-22222222-2", "b")


@pytest.mark.parametrize(
    ("record", "number", "previous", "target"),
    [
        (RECORD, None, False, SECOND),
        (RECORD, 1, False, FIRST),
        (RECORD, None, True, FIRST),
        (RECORD, 1, True, OLD),
        (EMPTY, None, False, None),
        (EMPTY, None, True, OLD),
    ],
)
def test_the_newest_attempt_the_one_of_a_number_or_the_one_before(
    record: Record, number: int | None, previous: bool, target: LogTarget | None
) -> None:
    assert log_target(record, number, previous=previous) == target


def test_an_attempt_that_is_not_there_is_refused_with_those_that_are() -> None:
    with pytest.raises(UsageError, match="no attempt 7: this run has 1, 2"):
        log_target(RECORD, 7)
    with pytest.raises(UsageError, match="no attempt before this one"):
        log_target(replace(RECORD, history=()), 1, previous=True)
