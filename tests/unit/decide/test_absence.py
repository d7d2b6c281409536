"""When a record is marked as one whose spec is gone, and when that is taken back."""

from dataclasses import replace
from datetime import timedelta

import pytest

from engine.decide.absence import gone_since, mark_back, mark_gone
from engine.decide.actions import MarkBack
from engine.decide.record import Record
from engine.wellknown import BACK_SINCE, GONE_SINCE
from tests.unit.decide.situations import JOB, NOW, act, attempt, finished, record

DAY = timedelta(days=1)


def annotated(known: Record, **annotations: str) -> Record:
    names = {"gone": GONE_SINCE, "back": BACK_SINCE}
    return replace(known, annotations={names.get(k, k): v for k, v in annotations.items()})


def test_a_run_that_is_over_is_marked_once() -> None:
    marked = mark_gone(annotated(finished(), note="mine"), NOW)
    assert marked is not None
    assert marked.annotations == {"note": "mine", GONE_SINCE: "2026-01-01T12:00:20Z"}
    assert gone_since(marked.annotations) == NOW
    assert mark_gone(marked, NOW + 90 * DAY) is None


def test_what_is_under_way_is_marked_only_after_a_day_of_silence() -> None:
    waiting = record(attempt())
    assert mark_gone(waiting, NOW) is None
    assert mark_gone(waiting, NOW + 2 * DAY) is not None
    assert mark_gone(replace(waiting, attempts=()), NOW) is None


@pytest.mark.parametrize("heard", ["claimed_at", "started_at", "finished_at", "queued_at"])
def test_any_sign_of_the_last_day_keeps_it_from_being_marked(heard: str) -> None:
    silent = replace(attempt(), claimed_at=None)
    known = replace(record(silent), queued_at=None)
    assert mark_gone(known, NOW + 2 * DAY) is not None
    at = NOW + DAY * 1.5
    if heard == "queued_at":
        known = replace(known, queued_at=at)
    else:
        known = known.with_attempt(replace(silent, **{heard: at}))  # type: ignore[arg-type]
    assert mark_gone(known, NOW + 2 * DAY) is None


def test_a_spec_that_comes_and_goes_costs_one_mark_a_day() -> None:
    marked = annotated(finished(), gone="2025-12-31T00:00:00Z")
    back = mark_back(marked, NOW)
    assert back.annotations == {BACK_SINCE: "2026-01-01T12:00:20Z"}
    assert mark_gone(back, NOW + DAY / 2) is None
    again = mark_gone(back, NOW + DAY)
    assert again is not None
    assert again.annotations.keys() == {GONE_SINCE}


@pytest.mark.parametrize("text", ["", "soon", "2026-01-01", "2026-01-01T00:00:00", "9" * 5000])
def test_a_mark_that_cannot_be_read_is_made_anew(text: str) -> None:
    broken = annotated(finished(), gone=text)
    assert gone_since(broken.annotations) is None
    marked = mark_gone(broken, NOW)
    assert marked is not None
    assert gone_since(marked.annotations) == NOW


def test_a_record_whose_spec_is_back_ages_no_longer_and_its_job_is_left_alone() -> None:
    marked = annotated(finished(), gone="2025-12-31T00:00:00Z")
    action = act(JOB, marked)
    assert isinstance(action, MarkBack)
    assert replace(action.record, annotations=marked.annotations) == marked
    assert act(JOB, action.record) == act(JOB, finished())
