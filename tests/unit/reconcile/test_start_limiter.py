"""The new runs of one reading of the specs begin together, or not at all."""

from collections.abc import Iterable

import pytest
from msgspec import field

from engine.api.model import Job, Limits
from engine.errors import UsageError
from engine.informers.factory import InformerFactory
from engine.informers.reflector import WatchContext
from engine.lifecycle.max_starts import MaxStarts, NewRun, new_run
from engine.reconcile.job_store import JobStore
from engine.reconcile.start_limiter import StartLimiter
from engine.refs import JobKey
from engine.runtime.supervisor import Supervisor
from tests.unit.builders import make_job
from tests.unit.lifecycle.states import JOB, finished, record
from tests.unit.pods import ended, job_pod, running
from tests.unit.reconcile.model_cluster import Cluster
from tests.unit.reconcile.model_engine import ModelClient

TWO = MaxStarts(2)


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


def test_a_spec_that_is_as_it_once_was_is_not_kept_from_the_brake_by_its_old_pod() -> None:
    changed = finished(job=make_job(script="other"))
    old_pod = job_pod(JOB, ended(0), phase="Succeeded")
    assert new_run(JOB, changed, [old_pod]) is NewRun.CHANGED


def test_the_jobs_are_named_with_why() -> None:
    many = all_new(keys(*(f"job-{number:02}" for number in range(12))))
    with pytest.raises(UsageError) as told:
        TWO.check({**many, JobKey("ci", "z"): NewRun.CHANGED})
    assert told.value.cause == (
        "13 jobs would start new runs, limits.maxStarts allows 2: none is started; no record of "
        "ci/job-00, ci/job-01, ci/job-02, ci/job-03, ci/job-04, ci/job-05, ci/job-06, ci/job-07, "
        "ci/job-08, ci/job-09 and 2 more; another spec than in the record of ci/z"
    )
    assert told.value.hint.endswith("If it is meant: --max-starts 13")


class Informers(InformerFactory):
    """Whose watches of namespaces that are `failing` fail."""

    failing: frozenset[str] = frozenset()

    def is_failing(self, namespace: str, *, refused: bool = False) -> bool:
        return namespace in self.failing and not refused


class Limiter(StartLimiter):
    """Whose jobs would all begin, but for those that are `over`."""

    over: frozenset[JobKey] = frozenset()
    is_read: bool = True
    jobs: dict[JobKey, Job] = field(default_factory=dict)

    def read(self, *found: JobKey) -> None:
        """These jobs, of which one that was there before has not changed, and no others."""
        self.jobs = {key: self.jobs.get(key) or make_job(key.name) for key in found}
        self.sync(self.jobs)

    def new_runs(self, keys: Iterable[JobKey]) -> dict[JobKey, NewRun] | None:
        return all_new(frozenset(keys) - self.over) if self.is_read else None


def make_limiter(most: int) -> Limiter:
    client = ModelClient(Cluster())
    context = WatchContext(client, Supervisor(ignore), ignore, ignore)
    limiter = Limiter(JobStore(), Informers(context, "default"), most)
    limiter.configure(Limits())
    return limiter


def ignore(_event: object) -> None:
    """Nobody listens."""


def test_suspended_jobs_stop_no_later_ones_and_are_reported_once() -> None:
    limiter = make_limiter(2)
    limiter.read(*keys("a", "b", "c"))
    released, errors = limiter.release()
    assert (released, len(errors)) == (keys(), 1)
    limiter.read(*keys("a", "b", "c", "d"))
    assert limiter.release() == (keys("d"), [])
    assert JobKey("ci", "a") in limiter
    assert JobKey("ci", "d") not in limiter


def test_suspended_jobs_begin_once_they_are_fewer_or_more_may() -> None:
    limiter = make_limiter(2)
    limiter.read(*keys("a", "b", "c"))
    limiter.release()
    limiter.limit = MaxStarts(3)
    assert limiter.release() == (keys("a", "b", "c"), [])
    limiter.limit = TWO
    limiter.read()
    limiter.read(*keys("a", "b", "c"))
    limiter.release()
    limiter.read(*keys("a", "b"))
    assert limiter.release() == (keys("a", "b"), [])


def test_a_job_without_a_new_run_goes_on_though_its_batch_is_suspended() -> None:
    limiter = make_limiter(2)
    limiter.read(*keys("a", "b", "c", "over"))
    limiter.over = keys("over")
    released, _ = limiter.release()
    assert released == keys("over")


def test_nothing_begins_before_its_namespace_was_read() -> None:
    limiter = make_limiter(2)
    limiter.is_read = False
    limiter.read(*keys("a"))
    assert limiter.release() == (keys(), [])
    assert JobKey("ci", "a") in limiter
    assert limiter.suspended == []


def test_a_namespace_that_can_not_be_read_holds_up_no_job_of_another() -> None:
    limiter, closed = make_limiter(2), JobKey("closed", "x")
    informers = limiter.informers
    assert isinstance(informers, Informers)
    informers.failing = frozenset({"closed"})
    limiter.read(*keys("a", "b"), closed)
    assert limiter.release() == (keys("a", "b"), [])
    assert closed in limiter
    informers.failing = frozenset()
    assert limiter.release() == (frozenset({closed}), [])


def test_suspended_jobs_are_known() -> None:
    limiter = make_limiter(2)
    limiter.read(*keys("c", "a", "b"))
    limiter.release()
    assert limiter.suspended == sorted(keys("a", "b", "c"))
