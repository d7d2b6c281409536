"""Random graphs of jobs, edits, failures and crashes: nothing begins before what it waits for.

Each job has a model of the cluster of its own, and one engine; their records are what they know of
each other.
"""

import json
import os
from functools import cache
from itertools import pairwise

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    rule,
    run_state_machine_as_test,
)

from engine.api.dependencies import needs_of
from engine.api.model import Job
from engine.lifecycle.predecessors import JobOrder, Predecessor
from engine.lifecycle.record import Record
from engine.refs import JobKey
from engine.status.outcome import Reason, State
from tests.unit.builders import make_job
from tests.unit.reconcile.model_cluster import NAMESPACE, SOURCE_NAME, Cluster
from tests.unit.reconcile.model_engine import Engine

NAMES = ("a", "b", "c", "d")
ROUNDS = 200
WHICH = st.sampled_from(NAMES)
ORDERS = st.lists(st.sampled_from((None, "succeeded", "finished")), min_size=6, max_size=6)
"""For each two of the four, whether and how the later one waits for the earlier one."""
SETTINGS = settings(
    max_examples=int(os.environ.get("ENGINE_MACHINE_EXAMPLES", "100")) // 2, stateful_step_count=30
)


@cache
def revision(name: str, token: str, waits: str) -> Job:
    secrets = {"TOKEN": {"value": "anything"}}
    return make_job(name, secrets=secrets, rerun=token, dependsOn=json.loads(waits))


class Ordered(RuleBasedStateMachine):
    """Four jobs, of which later ones wait for earlier ones."""

    def __init__(self) -> None:
        super().__init__()
        self.orders: list[str | None] = [None] * 6
        self.revisions = dict.fromkeys(NAMES, 0)
        self.fails = dict.fromkeys(NAMES, False)
        self.clusters = {name: Cluster() for name in NAMES}
        self.engines: dict[str, Engine] = {}

    @initialize(orders=ORDERS)
    def begin(self, orders: list[str | None]) -> None:
        self.orders = orders
        self.engines = {name: Engine(self.clusters[name], self._job(name)) for name in NAMES}

    # What can happen

    @rule(which=WHICH, steps=st.integers(1, 8))
    def an_engine_works(self, which: str, steps: int) -> None:
        self._work(which, steps)

    @rule(which=WHICH, fails=st.booleans(), steps=st.integers(1, 6))
    def a_job_goes_on(self, which: str, fails: bool, steps: int) -> None:
        self.fails[which] = fails
        for _ in range(steps):
            self._work(which, 2)
            self._run_node(which)

    @rule(which=WHICH, fault=st.sampled_from(("lost", "failed")))
    def a_write_goes_wrong(self, which: str, fault: str) -> None:
        self.engines[which].client.fault = fault
        self._work(which, 1)

    @rule()
    def the_engine_crashes(self) -> None:
        self.engines = {name: engine.crash() for name, engine in self.engines.items()}

    @rule(which=WHICH)
    def a_spec_is_edited(self, which: str) -> None:
        self.revisions[which] += 1
        self._read_again()

    @rule(orders=ORDERS)
    def the_order_is_edited(self, orders: list[str | None]) -> None:
        self.orders = orders
        self._read_again()

    @rule(which=WHICH)
    def somebody_cancels_or_reruns(self, which: str) -> None:
        record = self.clusters[which].record
        if record is not None and record.state.is_final:
            self.clusters[which].rerun_by_hand(record)
        elif record is not None:
            self.clusters[which].cancel_by_hand(record)

    # What must be true

    def teardown(self) -> None:
        if not self.engines:
            return
        self.fails = dict.fromkeys(NAMES, False)
        for _ in range(ROUNDS):
            before = [cluster.serial for cluster in self.clusters.values()]
            finished = [self._work(name, 100) for name in NAMES]
            for name in NAMES:
                self._run_node(name)
            if before == [cluster.serial for cluster in self.clusters.values()] and all(finished):
                break
        else:
            raise AssertionError(f"no end after {ROUNDS} rounds: {self._records()}")
        for name, record in self._records().items():
            assert record.state.is_final
            failed = any(one.failure for one in self._predecessors(name))
            is_blamed = record.reason is Reason.DEPENDENCY_FAILED
            assert not is_blamed or (failed and not record.attempts), self._records()
            assert record.attempts or record.reason in (
                Reason.DEPENDENCY_FAILED,
                Reason.CANCELLED,
            ), f"neither ran nor failed: {record}"
        writes = [cluster.writes for cluster in self.clusters.values()]
        self.the_engine_crashes()
        for name in NAMES:
            self._work(name, 100)
        assert writes == [cluster.writes for cluster in self.clusters.values()], "needless writes"

    def _work(self, name: str, steps: int) -> bool:
        """Whether the job is over. At each step it is judged what it may have begun with."""
        engine, cluster = self.engines[name], self.clusters[name]
        for _ in range(steps):
            engine.hear(len(cluster.log))
            engine._state.record = cluster.record  # as a watch brings it
            before = self._predecessors(name)
            engine._state.observed.predecessors = before
            may_begin = self._may_begin(name)
            created, known = cluster.creates, cluster.record
            result = engine.step()
            begins = cluster.creates > created or (
                cluster.record is not None
                and bool(cluster.record.attempts)
                and not (known and known.attempts and known.run == cluster.record.run)
            )
            has_begun = known is not None and known.is_of(engine.job) and bool(known.attempts)
            if begins and not has_begun:
                assert may_begin, f"too early: {name}"
            if result is not None:
                return result.finished
            cluster.pass_time(1)
        return False

    def _may_begin(self, name: str) -> bool:
        """By the records alone: each that comes first is over at its present revision."""
        return all(
            self._is_over(one.name)
            and (one.may_fail or self._records()[one.name].state is State.SUCCEEDED)
            for one in self.engines[name].job.depends_on
        )

    def _is_over(self, name: str) -> bool:
        record, job = self._records().get(name), self.engines[name].job
        if record is None or not record.state.is_final or record.spec_hash != job.spec_hash:
            return False
        return record.reason is not Reason.DEPENDENCY_FAILED or any(
            self._is_over(one.name) and self._records()[one.name].state is not State.SUCCEEDED
            for one in job.depends_on
            if not one.may_fail
        )

    def _run_node(self, name: str) -> None:
        cluster = self.clusters[name]
        cluster.pass_time(10)
        for pod in list(cluster.pods.values()):
            cluster.run_node(pod)
        cluster.collect_garbage()
        for pod in cluster.running:
            cluster.exit_main(pod, 3 if self.fails[name] else 0)

    def _job(self, name: str) -> Job:
        """What it says of its order is no part of what runs."""
        at = NAMES.index(name)
        first = at * (at - 1) // 2
        waits = [
            {"name": other, "on": on}
            for other, on in zip(NAMES, self.orders[first : first + at], strict=False)
            if on is not None
        ]
        return revision(name, str(self.revisions[name]), json.dumps(waits))

    def _read_again(self) -> None:
        for name, engine in self.engines.items():
            job, cluster = self._job(name), self.clusters[name]
            if job != engine.job:
                engine.job = job
                # What failed is tried again with another order.
                cluster.forgotten |= {uid for run, _, uid in cluster.starts if run == job.run}

    def _predecessors(self, name: str) -> tuple[Predecessor, ...]:
        jobs = {engine.job.key: engine.job for engine in self.engines.values()}
        order = JobOrder(jobs, needs_of(jobs), self._record_of, SOURCE_NAME)
        return order.predecessors(JobKey(NAMESPACE, name))

    def _record_of(self, key: JobKey) -> Record | None:
        return self.clusters[key.name].record

    def _records(self) -> dict[str, Record]:
        return {name: c.record for name, c in self.clusters.items() if c.record is not None}


def test_no_job_of_any_graph_begins_before_what_it_waits_for_and_each_comes_to_an_end() -> None:
    run_state_machine_as_test(Ordered, settings=SETTINGS)


def test_a_chain_runs_in_its_order_and_fails_and_recovers_as_a_whole() -> None:
    history = Ordered()
    history.begin(["succeeded", None, "succeeded", None, None, "finished"])
    for name in NAMES:
        history.a_job_goes_on(name, fails=name == "a", steps=12)
    assert {name: record.reason for name, record in history._records().items()} == {
        "a": Reason.SCRIPT_FAILED,
        "b": Reason.DEPENDENCY_FAILED,
        "c": Reason.DEPENDENCY_FAILED,
        "d": Reason.SUCCEEDED,
    }
    assert history._records()["c"].message == "ci/b failed (DependencyFailed)"
    history.a_spec_is_edited("a")
    for name in ("d", "c", "b"):
        history.an_engine_works(name, 20)
    waiting = history._records()
    assert [waiting[name].state for name in "bcd"] == [State.QUEUED, State.QUEUED, State.SUCCEEDED]
    assert waiting["c"].message == "waits for ci/b"
    history.teardown()
    ends = [history._records()[name].finished_at for name in "abc"]
    assert all(one and other and one < other for one, other in pairwise(ends))
