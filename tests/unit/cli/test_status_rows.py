"""`engine status` at 80 columns: a row is a line, and what wants attention comes first."""

from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from engine.cli.output import display_width, format_rows
from engine.cli.printers.status import overview_rows, source_lines, succeeded_last
from engine.inspect.view import JobView, LeaseHolder, LeaseHolders, Overview
from engine.lifecycle.observed_status import recorded_status
from engine.lifecycle.record import Attempt, Record
from engine.refs import JobKey
from engine.status.outcome import Reason, State

NOW = datetime(2026, 1, 1, 12, 5, tzinfo=UTC)


def view(name: str, state: State, reason: Reason | None = None, message: str = "") -> JobView:
    attempts = (Attempt(1, f"{name}-aaaaaaaa-1", "u", outcome=reason),)
    record = Record(JobKey("ci", name), "web", "a" * 64, state=state, reason=reason)
    record = replace(record, message=message, attempts=attempts, finished_at=NOW)
    return JobView(record.key, record, status=recorded_status(record))


SUCCEEDED = view("a-success", State.SUCCEEDED, Reason.SUCCEEDED)
CANCELLED = view("b-cancelled", State.CANCELLED, Reason.CANCELLED, "cancelled by a@host")
RUNNING = view("c-running", State.RUNNING)
QUEUED = view("d-queued", State.QUEUED, None, "exceeded quota: compute")
FAILED = view("e-failed", State.FAILED, Reason.IMAGE_PULL_FAILED, "manifest unknown " * 40)
JOBS = (SUCCEEDED, CANCELLED, RUNNING, QUEUED, FAILED)


def overview(*holders: LeaseHolder) -> Overview:
    return Overview(JOBS, NOW, LeaseHolders(NOW, holders, is_complete=True))


def test_at_80_columns_a_row_is_a_line_and_no_word_is_there_twice() -> None:
    lines = format_rows(overview_rows(JOBS, NOW), width=80)
    assert all(display_width(line) <= 80 for line in lines)
    assert lines[1].split() == ["ci/a-success", "Succeeded", "1", "0s"]
    assert not any("aaaaaaaa" in line for line in lines), "the pod is for -o wide"


def test_what_failed_or_is_not_over_comes_first_and_successes_last() -> None:
    found = [job.key.name for job in succeeded_last(JOBS)]
    assert found == ["e-failed", "c-running", "d-queued", "b-cancelled", "a-success"]


@pytest.mark.parametrize(
    ("holders", "words"),
    [
        ((), "no engine follows source web; run engine reconcile"),
        (
            (LeaseHolder("web", "ci", "node-1", NOW, is_alive=False),),
            "no engine follows source web; run engine reconcile",
        ),
        (
            (LeaseHolder("web", "ci", "node-1", NOW, is_alive=True),),
            "source web is followed by node-1, renewed 0s ago",
        ),
    ],
)
def test_the_last_line_says_who_follows_only_while_something_is_not_over(
    holders: tuple[LeaseHolder, ...], words: str
) -> None:
    assert source_lines(overview(*holders), JOBS) == [words]
    assert source_lines(overview(*holders), (SUCCEEDED, CANCELLED, FAILED)) == []
