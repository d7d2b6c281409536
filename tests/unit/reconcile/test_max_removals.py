"""The brake on removals: more than half of a source never goes unless that was said."""

import pytest
from msgspec.structs import replace

from engine.reconcile.options import RunOptions
from engine.refs import JobKey


def keys(count: int) -> list[JobKey]:
    return [JobKey("ci", f"job-{number:02}") for number in range(count)]


@pytest.mark.parametrize(
    ("limit", "gone", "jobs", "is_refused"),
    [
        (None, 0, 0, False),
        (None, 10, 10, False),
        (None, 11, 11, True),
        (None, 11, 22, False),
        (None, 11, 21, True),
        (None, 500, 1000, False),
        (None, 501, 1000, True),
        (0, 1, 100, True),
        (3, 3, 3, False),
        (3, 4, 100, True),
        (11, 11, 11, False),
    ],
)
def test_more_than_ten_jobs_and_more_than_half_of_them_are_not_removed_unless_that_was_said(
    limit: int | None, gone: int, jobs: int, is_refused: bool
) -> None:
    options = RunOptions(source="web", max_removals=limit)
    assert (options.refuse_removals(keys(gone), jobs) is not None) is is_refused


def test_yes_is_for_any_number_unless_there_is_one() -> None:
    yes = RunOptions(source="web", yes=True)
    assert yes.refuse_removals(keys(1000), 1000) is None
    assert replace(yes, max_removals=3).refuse_removals(keys(4), 1000) is not None


def test_the_refusal_names_the_number_the_jobs_and_what_allows_it() -> None:
    assert str(RunOptions(source="web").refuse_removals(keys(12), 13)) == (
        "--prune would remove 12 of the 13 jobs of source web, more than half: none is removed;"
        " ci/job-00, ci/job-01, ci/job-02, ci/job-03, ci/job-04, ci/job-05, ci/job-06, ci/job-07,"
        " ci/job-08, ci/job-09 and 2 more (are the folder and --source the right ones? If it is"
        " meant: --max-removals 12)"
    )
    one = RunOptions(source="web", max_removals=1)
    assert "--max-removals allows 1:" in str(one.refuse_removals(keys(2), 13))
