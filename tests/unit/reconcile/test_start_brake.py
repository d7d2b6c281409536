"""Which new runs may begin: what one reading of the specs would start is judged as a whole."""

from collections.abc import Iterable

import pytest

from engine.errors import UsageError
from engine.reconcile.start_brake import NewRun, StartBrake, StartLimit, new_run
from engine.refs import JobKey
from tests.unit.builders import make_job
from tests.unit.decide.situations import JOB, finished, record
from tests.unit.pods import ended, job_pod, running

TWO = StartLimit(2)


def keys(*names: str) -> frozenset[JobKey]:
    return frozenset(JobKey("ci", name) for name in names)


def all_new(found: Iterable[JobKey]) -> dict[JobKey, NewRun]:
    return dict.fromkeys(found, NewRun.NO_RECORD)


def test_a_job_without_a_record_is_a_new_run_and_so_is_one_with_another_spec() -> None:
    assert new_run(JOB, None, ()) is NewRun.NO_RECORD
    assert new_run(JOB, None, [job_pod(JOB, gated=True)]) is NewRun.NO_RECORD
    assert new_run(make_job(rerun="1"), finished(), ()) is NewRun.CHANGED


def test_what_is_over_under_way_or_queued_is_none() -> None:
    assert new_run(JOB, finished(), ()) is None
    assert new_run(JOB, record(), ()) is None
    assert new_run(JOB, None, [job_pod(JOB, running())]) is None
    assert new_run(JOB, None, [job_pod(JOB, ended(0), phase="Succeeded")]) is None


def test_the_jobs_are_named_with_why() -> None:
    many = all_new(keys(*(f"job-{number:02}" for number in range(12))))
    with pytest.raises(UsageError) as told:
        TWO.require({**many, JobKey("ci", "z"): NewRun.CHANGED})
    assert told.value.cause == (
        "13 jobs would start new runs, limits.maxStarts allows 2: none is started; no record of "
        "ci/job-00, ci/job-01, ci/job-02, ci/job-03, ci/job-04, ci/job-05, ci/job-06, ci/job-07, "
        "ci/job-08, ci/job-09 and 2 more; another spec than in the record of ci/z"
    )
    assert told.value.hint.endswith("If it is meant: --max-starts 13")


def test_what_is_held_stops_nothing_that_comes_later_and_is_told_once() -> None:
    brake = StartBrake()
    brake.add(keys("a", "b", "c"))
    released, refusal = brake.judge(TWO, all_new)
    assert (released, refusal is not None) == (keys(), True)
    brake.add(keys("d"))
    assert brake.judge(TWO, all_new) == (keys("d"), None)
    assert JobKey("ci", "a") in brake
    assert JobKey("ci", "d") not in brake


def test_what_is_held_begins_once_it_is_less_or_more_may() -> None:
    brake = StartBrake()
    brake.add(keys("a", "b", "c"))
    brake.judge(TWO, all_new)
    assert brake.judge(StartLimit(3), all_new) == (keys("a", "b", "c"), None)
    brake.add(keys("a", "b", "c"))
    brake.judge(TWO, all_new)
    brake.discard(keys("c"))
    assert brake.judge(TWO, all_new) == (keys("a", "b"), None)


def test_of_a_reading_that_is_too_much_what_begins_nothing_goes_on() -> None:
    brake = StartBrake()
    brake.add(keys("a", "b", "c", "over"))
    released, _ = brake.judge(TWO, lambda found: all_new(frozenset(found) - keys("over")))
    assert released == keys("over")


def test_nothing_begins_before_it_is_known_what_there_is() -> None:
    brake = StartBrake()
    brake.add(keys("a"))
    assert brake.judge(TWO, lambda _: None) == (keys(), None)
    assert JobKey("ci", "a") in brake
