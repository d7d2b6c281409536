"""When a record is marked as one whose spec is gone, and when that is taken back."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from engine.lifecycle.actions import WriteRecord
from engine.lifecycle.orphan import mark_orphaned, orphaned_since
from engine.lifecycle.record import Record
from engine.wellknown import ORPHANED_SINCE
from tests.unit.lifecycle.states import JOB, NOW, act, attempt, finished, record

DAY = timedelta(days=1)


def annotated(known: Record, **annotations: str) -> Record:
    names = {"gone": ORPHANED_SINCE}
    return replace(known, annotations={names.get(k, k): v for k, v in annotations.items()})


def test_a_run_that_is_over_is_marked_once() -> None:
    marked = mark_orphaned(annotated(finished(), note="mine"), NOW)
    assert marked is not None
    assert marked.annotations == {"note": "mine", ORPHANED_SINCE: "2026-01-01T12:00:20Z"}
    assert orphaned_since(marked.annotations) == NOW
    assert mark_orphaned(marked, NOW + 90 * DAY) is None


def test_a_job_that_waits_is_marked_and_one_that_runs_is_not() -> None:
    running = record(attempt())
    assert mark_orphaned(running, NOW + 2 * DAY) is None
    assert mark_orphaned(replace(running, attempts=()), NOW) is not None


@pytest.mark.parametrize("text", ["", "soon", "2026-01-01", "2026-01-01T00:00:00", "9" * 5000])
def test_a_mark_that_cannot_be_read_is_made_anew(text: str) -> None:
    broken = annotated(finished(), gone=text)
    assert orphaned_since(broken.annotations) is None
    marked = mark_orphaned(broken, NOW)
    assert marked is not None
    assert orphaned_since(marked.annotations) == NOW


def test_a_record_whose_spec_is_back_ages_no_longer_and_its_job_is_left_alone() -> None:
    marked = annotated(finished(), gone="2025-12-31T00:00:00Z")
    action = act(JOB, marked)
    assert isinstance(action, WriteRecord)
    assert replace(action.record, annotations=marked.annotations) == marked
    assert act(JOB, action.record) == act(JOB, finished())
