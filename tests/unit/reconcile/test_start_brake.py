"""Which new runs may begin: what one reading of the specs would start is judged as a whole."""

from collections.abc import Iterable

import pytest

from engine.api.model import Job, Limits
from engine.errors import UsageError
from engine.informers.factory import InformerFactory
from engine.informers.reflector import WatchContext
from engine.reconcile.job_store import JobStore
from engine.reconcile.start_brake import NewRun, StartBrake, StartLimit, new_run
from engine.refs import JobKey
from engine.runtime.supervisor import Supervisor
from tests.unit.builders import make_job
from tests.unit.decide.situations import JOB, finished, record
from tests.unit.pods import ended, job_pod, running
from tests.unit.reconcile.model_cluster import Cluster
from tests.unit.reconcile.model_engine import ModelClient

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


class Brake(StartBrake):
    """Whose jobs would all begin, but for those that are `over`."""

    def __init__(self, most: int) -> None:
        client = ModelClient(Cluster())
        context = WatchContext(client, Supervisor(ignore), ignore, ignore)
        super().__init__(JobStore(), InformerFactory(context, "default"), most)
        self.configure(Limits())
        self.failing: set[str] = set()
        self.over: frozenset[JobKey] = frozenset()
        self.is_read = True
        self.jobs: dict[JobKey, Job] = {}

    def read(self, *found: JobKey) -> None:
        """These jobs, of which one that was there before has not changed, and no others."""
        self.jobs = {key: self.jobs.get(key) or make_job(key.name) for key in found}
        self.sync(self.jobs)

    def is_failing(self, namespace: str) -> bool:
        return namespace in self.failing

    def new_runs(self, keys: Iterable[JobKey]) -> dict[JobKey, NewRun] | None:
        return all_new(frozenset(keys) - self.over) if self.is_read else None


def ignore(_event: object) -> None:
    """Nobody listens."""


def test_what_is_held_stops_nothing_that_comes_later_and_is_told_once() -> None:
    brake = Brake(2)
    brake.read(*keys("a", "b", "c"))
    released, refusal = brake.judge()
    assert (released, refusal is not None) == (keys(), True)
    brake.read(*keys("a", "b", "c", "d"))
    assert brake.judge() == (keys("d"), None)
    assert JobKey("ci", "a") in brake
    assert JobKey("ci", "d") not in brake


def test_what_is_held_begins_once_it_is_less_or_more_may() -> None:
    brake = Brake(2)
    brake.read(*keys("a", "b", "c"))
    brake.judge()
    brake.limit = StartLimit(3)
    assert brake.judge() == (keys("a", "b", "c"), None)
    brake.limit = TWO
    brake.read()
    brake.read(*keys("a", "b", "c"))
    brake.judge()
    brake.read(*keys("a", "b"))
    assert brake.judge() == (keys("a", "b"), None)


def test_of_a_reading_that_is_too_much_what_begins_nothing_goes_on() -> None:
    brake = Brake(2)
    brake.read(*keys("a", "b", "c", "over"))
    brake.over = keys("over")
    released, _ = brake.judge()
    assert released == keys("over")


def test_nothing_begins_before_it_is_known_what_there_is() -> None:
    brake = Brake(2)
    brake.is_read = False
    brake.read(*keys("a"))
    assert brake.judge() == (keys(), None)
    assert JobKey("ci", "a") in brake
    assert brake.held == []


def test_a_namespace_that_can_not_be_read_holds_up_no_job_of_another() -> None:
    brake, closed = Brake(2), JobKey("closed", "x")
    brake.failing = {"closed"}
    brake.read(*keys("a", "b"), closed)
    assert brake.judge() == (keys("a", "b"), None)
    assert closed in brake
    brake.failing = set()
    assert brake.judge() == (frozenset({closed}), None)


def test_what_is_held_is_known_by_name() -> None:
    brake = Brake(2)
    brake.read(*keys("c", "a", "b"))
    brake.judge()
    assert brake.held == sorted(keys("a", "b", "c"))
    assert brake.remark == "held by --max-starts: ci/a, ci/b, ci/c"
