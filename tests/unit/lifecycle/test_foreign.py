"""What belongs to another source is refused by name, and left alone."""

from msgspec.structs import replace

from engine.lifecycle.actions import ReportError
from tests.unit.lifecycle.states import JOB, act, attempt, finished, record


def test_a_record_of_another_source_is_refused_by_name() -> None:
    theirs = replace(record(attempt()), source="nightly")
    assert act(JOB, theirs) == ReportError(
        "job ci/build belongs to source 'nightly', not to 'default'"
    )


def test_even_a_finished_job_of_another_source_is_left_alone() -> None:
    assert isinstance(act(JOB, replace(finished(), source="nightly")), ReportError)
