"""Any order of events, crashes between any two writes: the five promises hold, and jobs end.

The machine plays one job on `model_cluster` with one or two engines. What happens at the cluster
is judged there, at the very moment; this file says what can happen, and what must be true once
everything has come to rest.
"""

import os
from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from msgspec.structs import replace

from engine.api.model import Features, Job, OnChange, Retry
from engine.lifecycle.record import Record
from engine.reconcile.reconciler import Result
from engine.status.outcome import Reason, State
from engine.wellknown import ATTEMPT, JOB, MANAGED_BY, RUN, SOURCE
from tests.unit.builders import make_job
from tests.unit.reconcile.model_cluster import (
    SETUP_IMAGE,
    Cluster,
    Pod,
    is_over,
    is_running,
    is_selected,
    owner_of,
    uid_of,
)
from tests.unit.reconcile.model_engine import Engine

ROUNDS = 200
RUN_TIMEOUT = 300.0
OFF = Features(active_deadline_seconds=False)
MOST_IDLE = 60
"""Seconds that a node may do nothing where nothing is disturbed."""
LABELS = st.sampled_from((MANAGED_BY, SOURCE, JOB, RUN, ATTEMPT))
RETRIES = st.sampled_from(
    (
        Retry(),
        Retry(1),
        Retry(2, frozenset({"PodDeleted"})),
        Retry(1, frozenset({"ScriptFailed", "DeadlineExceeded"})),
    )
)
POLICIES = st.sampled_from(((), ("Always",), ("Always", "IfNotPresent"), ("Always",) * 3))
WHICH = st.integers(0, 1)
YES_OR_NO = st.booleans()
EXAMPLES = os.environ.get("ENGINE_MACHINE_EXAMPLES", "")
"""For a search that finds other histories each time; without it they are always the same."""
SETTINGS = settings(
    max_examples=int(EXAMPLES or 100),
    derandomize=not EXAMPLES,
    stateful_step_count=50,
    phases=set(Phase) - {Phase.explain},  # it traces every line, and takes minutes
)


class Undisturbed(RuleBasedStateMachine):
    """One job, from its spec to its end; engines die, writes get lost, and watches lag."""

    disturbed = False

    def __init__(self) -> None:
        super().__init__()
        self.cluster = Cluster()
        self.engines: list[Engine] = []
        self.runs = 1
        self.idle = 0
        self.base = make_job()

    @initialize(
        engines=st.integers(1, 2),
        retry=RETRIES,
        main=POLICIES,
        setup=st.one_of(st.none(), POLICIES),
        keeps=YES_OR_NO,
        keeps_timeout=YES_OR_NO,
        up=YES_OR_NO,
        cached=YES_OR_NO,
        on_change=st.sampled_from(OnChange),
    )
    def begin(
        self,
        engines: int,
        retry: Retry,
        main: tuple[str, ...],
        setup: tuple[str, ...] | None,
        on_change: OnChange,
        keeps: bool,
        keeps_timeout: bool,
        up: bool,
        cached: bool,
    ) -> None:
        spec: dict[str, Any] = {"secrets": {"TOKEN": {"value": "anything"}}}
        if keeps:
            spec["ttlAfterFinished"] = {"success": "10m", "failure": "1h"}
        if setup is not None:
            spec["initContainers"] = [{"name": "setup", "image": SETUP_IMAGE}]
        self.base = make_job(**spec)
        lists = {"main": main, "setup": setup or ()}
        policies = {name: wanted for name, wanted in lists.items() if wanted}
        self.base = replace(self.base, retry=retry, policies=policies, on_change=on_change)
        if keeps_timeout and self.disturbed:
            self.base = replace(self.base, timeout=RUN_TIMEOUT, features=OFF)
        self.cluster = Cluster(
            timeout=float("inf") if self.base.features.active_deadline_seconds else RUN_TIMEOUT,
            retried=retry.on if retry.max else frozenset(),
            start_timeout=self.base.start_timeout,
            registry_up=up or not self.disturbed,
            cached=cached,
        )
        job = self._revision()
        self.engines = [Engine(self.cluster, job) for _ in range(engines)]

    # Things take their course

    @rule(which=WHICH, steps=st.integers(1, 8))
    def one_engine_and_the_node_go_on(self, which: int, steps: int) -> None:
        engine = self._engine(which)
        for _ in range(steps):
            engine.hear(len(self.cluster.log))
            engine.step()
        self._run_node(steps)

    @rule(steps=st.integers(1, 4))
    def the_node_goes_on(self, steps: int) -> None:
        self._run_node(steps)

    # Engines at work, and what befalls them

    @rule(which=WHICH, steps=st.integers(1, 6))
    def work(self, which: int, steps: int) -> None:
        self._engine(which).work(steps)

    @rule(order=st.lists(WHICH, min_size=2, max_size=12), pause=st.sampled_from((0, 4)))
    def engines_take_turns(self, order: list[int], pause: int) -> None:
        for which in order:
            self._engine(which).hear(len(self.cluster.log))
            self._engine(which).step()
            self._pass_time(pause)

    @rule(
        which=WHICH,
        fault=st.sampled_from(("lost", "failed")),
        after=st.integers(0, 1),
        die=YES_OR_NO,
    )
    def work_with_a_fault(self, which: int, fault: str, after: int, die: bool) -> None:
        engine = self._engine(which)
        engine.client.fault, engine.client.writes_before_fault = fault, after
        engine.step()
        if die:
            self.crash(which)

    @rule(which=WHICH)
    def crash(self, which: int) -> None:
        at = which % len(self.engines)
        self.engines[at] = self.engines[at].crash()

    @rule(which=WHICH, events=st.integers(1, 8))
    def watch(self, which: int, events: int) -> None:
        self._engine(which).hear(events)

    @rule(seconds=st.integers(1, 10))
    def time_passes(self, seconds: int) -> None:
        self._pass_time(seconds)

    @precondition(lambda self: not self.cluster.may_start)
    @rule()
    def the_engines_are_away_for_long(self) -> None:
        self.cluster.pass_time(700)

    @precondition(lambda self: self.cluster.running)
    @rule()
    def main_succeeds(self) -> None:
        self.cluster.exit_main(self.cluster.running[0], 0)

    @rule(
        what=st.sampled_from(("quota", "admission", "rights")),
        which=WHICH,
        tries=st.integers(1, 3),
    )
    def the_record_is_refused_and_nothing_is_left(self, what: str, which: int, tries: int) -> None:
        """Of what an engine made itself; where there is no record, it makes a pod in vain once.

        Before that it may wait for the engine of a pod that it didn't make.
        """
        self.cluster.refuse_records = what
        engine, before = self._engine(which), self.cluster.creates
        for _ in range(tries + 1):
            self._pass_time(40)
            engine.hear(len(self.cluster.log))
            result = engine.work()
        if result is not None:
            assert not engine.unrecorded, f"left behind: {engine.unrecorded}"
        if self.cluster.record is None:
            assert self.cluster.creates <= before + 1, "one pod after the other made in vain"

    @rule()
    def the_record_is_let_through(self) -> None:
        self.cluster.refuse_records = ""

    @rule()
    def collect_garbage(self) -> None:
        self.cluster.collect_garbage()

    @rule(holds=YES_OR_NO)
    def others_hold_pods_back(self, holds: bool) -> None:
        """As Kueue does, with gates of their own, until there is room."""
        if holds:
            self.cluster.holds_pods = True
        else:
            self.cluster.let_pods_go()

    @invariant()
    def every_dependent_has_an_owner(self) -> None:
        assert all(map(owner_of, self.cluster.dependents.values()))

    # At rest

    def teardown(self) -> None:
        if not self.engines:
            return
        for engine in self.engines:
            if engine.job.spec_hash != self._revision().spec_hash:
                engine.job = self._revision()
        self._rest()
        record = self.cluster.record
        if record is None or not record.state.is_final:
            self.engines = [engine.crash() for engine in self.engines]
            self._rest()
        run = self.engines[0].job.run
        record = self.cluster.record
        assert record is not None
        assert record.run == run
        assert record.state.is_final, f"not at its end: {record}"
        self._assert_nothing_is_left()
        if record.state is State.SUCCEEDED:
            assert any(r == run for r, _, _ in self.cluster.starts), "succeeded without a start"
        self._judge_end(record)
        self._assert_no_write_when_nothing_changed()

    def _rest(self) -> None:
        """No more faults; the cluster lets everything through, and containers succeed."""
        cluster = self.cluster
        cluster.let_everything_through()
        cluster.pass_time(60)  # what was refused may be asked for again
        for _ in range(ROUNDS):
            before = cluster.serial
            last: list[Result | None] = []
            for engine in self.engines:
                engine.hear(len(cluster.log))
                engine.hear_record()
                last.append(engine.work())
            for engine in self.engines:
                cluster.heed(engine.refused)
            self._run_node(1)
            cluster.collect_garbage()
            for pod in cluster.running:
                cluster.exit_main(pod, 0)
            if before == cluster.serial and all(result and result.finished for result in last):
                return
            cluster.pass_time(10)
        raise AssertionError(f"no end after {ROUNDS} rounds: {cluster.record} {cluster.pods}")

    def _assert_nothing_is_left(self) -> None:
        """What runs of somebody else stays, and so does what hides from the engine's selector."""
        unfinished = [pod for pod in self.cluster.pods.values() if not is_over(pod)]
        unfinished = [
            pod
            for pod in unfinished
            if not (uid_of(pod) in self.cluster.forged and is_running(pod)) and is_selected(pod)
        ]
        assert not unfinished, f"left behind: {unfinished}"
        living = {pod["metadata"]["uid"] for pod in self.cluster.pods.values()}
        assert set(map(owner_of, self.cluster.dependents.values())) <= living

    def _assert_no_write_when_nothing_changed(self) -> None:
        writes = self.cluster.writes
        fresh = [engine.crash() for engine in self.engines]
        for engine in (*self.engines, *fresh):
            result = engine.work()
            assert result is not None
            assert result.finished
        assert self.cluster.writes == writes, "a write although nothing changed"

    def _pass_time(self, seconds: int) -> None:
        """However little the others do: what nobody disturbs has no minute without a step."""
        self.cluster.pass_time(seconds)
        self.idle += 0 if self.disturbed else seconds
        if self.idle >= MOST_IDLE:
            self._run_node(1)

    def _run_node(self, steps: int) -> None:
        self.idle = 0
        for _ in range(steps):
            for pod in list(self.cluster.pods.values()):
                self.cluster.run_node(pod)

    def _revision(self) -> Job:
        return replace(self.base, spec_hash=f"{self.runs:08x}" + "0" * 56)

    def _engine(self, which: int) -> Engine:
        return self.engines[which % len(self.engines)]

    def _pod(self, which: int) -> Pod:
        pods = list(self.cluster.pods.values())
        return pods[which % len(pods)]

    def _judge_end(self, record: Record) -> None:
        """Nothing but the engines and the network failed: the job ran once, and succeeded."""
        assert record.state is State.SUCCEEDED, f"lost: {record}"
        assert len(self.cluster.starts) == 1


class Lifecycle(Undisturbed):
    """The same in a cluster where everything goes wrong, and with somebody who meddles."""

    disturbed = True

    @rule()
    def much_time_passes(self) -> None:
        self.cluster.pass_time(700)

    @precondition(lambda self: self.cluster.running)
    @rule(code=st.sampled_from((0, 0, 3)))
    def main_exits(self, code: int) -> None:
        pod = self.cluster.running[0]
        self.cluster.exit_main(pod, code)

    @precondition(lambda self: self.cluster.running)
    @rule()
    def evict(self) -> None:
        self.cluster.evict(self.cluster.running[0])

    @precondition(lambda self: self.cluster.pods)
    @rule(which=st.integers(0, 3), grace=st.sampled_from((0, 30)))
    def somebody_deletes_a_pod(self, which: int, grace: int) -> None:
        self.cluster.delete_by_hand(self._pod(which), grace)

    @rule(which=WHICH, steps=st.integers(0, 8), key=LABELS, value=st.sampled_from(("", "x")))
    def somebody_changes_a_label(self, which: int, steps: int, key: str, value: str) -> None:
        """Most often of a pod that runs."""
        self.cluster.let_everything_through()
        self.cluster.registry_up = True
        self.one_engine_and_the_node_go_on(which, steps)
        pod = self._open_pod()
        if pod is not None:
            self.cluster.change_label(pod, key, value)

    @precondition(lambda self: self.cluster.forged_pods == [])
    @rule(same_run=YES_OR_NO, number=st.integers(1, 3), gated=YES_OR_NO)
    def somebody_forges_a_pod(self, same_run: bool, number: int, gated: bool) -> None:
        job = self.engines[0].job
        self.cluster.forge(job.name, job.run if same_run else "f" * 8, number, gated=gated)

    @precondition(lambda self: self.cluster.forged_pods)
    @rule()
    def forged_pods_are_removed(self) -> None:
        self.cluster.remove_forged()

    @precondition(
        lambda self: (
            self.cluster.record is not None
            and len(self.engines) == 1
            and all(map(is_selected, self.cluster.pods.values()))
        )
    )
    @rule()
    def somebody_deletes_the_record(self) -> None:
        """Not under two engines: one would still know that the run is over, and clear it away."""
        self.cluster.forget_record()

    @precondition(lambda self: self.cluster.record is not None)
    @rule()
    def somebody_cancels_or_reruns(self) -> None:
        record = self.cluster.record
        assert record is not None
        if record.state.is_final:
            self.cluster.rerun_by_hand(record)
        else:
            self.cluster.cancel_by_hand(record)

    @rule()
    def the_registry_goes_or_comes_back(self) -> None:
        self.cluster.registry_up = not self.cluster.registry_up

    @rule(schedulable=YES_OR_NO)
    def node(self, schedulable: bool) -> None:
        self.cluster.schedulable = schedulable

    @rule(pods=st.sampled_from(("", "quota")), dependents=st.sampled_from(("", "quota")))
    def quota(self, pods: str, dependents: str) -> None:
        self.cluster.refuse_pods, self.cluster.refuse_dependents = pods, dependents

    @rule(dependents=YES_OR_NO)
    def admission(self, dependents: bool) -> None:
        self.cluster.blame.add(Reason.ADMISSION_REFUSED)
        self.cluster.refuse_pods = "" if dependents else "admission"
        self.cluster.refuse_dependents = "admission" if dependents else ""

    @rule()
    def change_spec(self) -> None:
        """A new revision of the spec, or a new rerun token: every engine reads it."""
        self.runs += 1
        job = self._revision()
        for engine in self.engines:
            engine.job = job

    @rule(which=WHICH, steps=st.integers(0, 8))
    def one_engine_reads_another_revision(self, which: int, steps: int) -> None:
        """Another checkout of the source; or the others have yet to see that it has changed."""
        self.runs += 1
        self._engine(which).job = self._revision()
        self.one_engine_and_the_node_go_on(which, steps)

    @rule(which=WHICH)
    def specs_are_read_again(self, which: int) -> None:
        """Other defaults make another job of the same spec: what was refused is asked for anew."""
        engine = self._engine(which)
        engine.job = replace(engine.job)

    def _open_pod(self) -> Pod | None:
        """The pod of the attempt that is under way."""
        record = self.cluster.record
        attempt = record.open_attempt if record is not None else None
        pods = self.cluster.pods.values()
        return next((p for p in pods if attempt and uid_of(p) == attempt.uid), None)

    def _judge_end(self, record: Record) -> None:
        """The job ended as it was made to end."""
        caused = {Reason.SUCCEEDED, *self.cluster.blame}
        assert record.reason in caused, f"nobody caused this: {record}"


@pytest.mark.timeout(600 + int(EXAMPLES or 0))  # a failure takes five minutes to shrink
@pytest.mark.parametrize("machine", [Undisturbed, Lifecycle])
def test_the_promises_hold_in_any_order_of_events(machine: type[Undisturbed]) -> None:
    run_state_machine_as_test(machine, settings=SETTINGS)


def begun(**more: Any) -> Lifecycle:
    """A history of one job, whose engines have read what there is."""
    history = Lifecycle()
    given: dict[str, Any] = {"engines": 1, "retry": Retry(), "main": (), "setup": None}
    given |= {"on_change": OnChange.REPLACE, "keeps": False, "keeps_timeout": False}
    history.begin(**{**given, "up": True, "cached": False, **more})
    for which in range(len(history.engines)):
        history.work(which=which, steps=2)
    return history


def test_what_was_refused_is_not_taken_for_made_once_the_specs_are_read_again() -> None:
    history = begun()
    history.quota(pods="", dependents="quota")
    history.work(which=0, steps=2)
    assert history.cluster.pods
    assert not history.cluster.dependents
    history.specs_are_read_again(which=0)
    history.quota(pods="", dependents="")
    history.teardown()


def test_a_pod_that_starts_when_it_is_given_up_is_spared_and_its_attempt_goes_on() -> None:
    history = begun(main=("Always", "IfNotPresent"), up=False, cached=False)
    cluster = history.cluster
    history.work(which=0, steps=6)
    history.the_node_goes_on(steps=3)
    history.watch(which=0, events=50)
    for _ in range(20):
        if cluster.record is not None and cluster.record.last and not cluster.record.open_attempt:
            break
        history.work(which=0, steps=1)
    assert cluster.record is not None
    assert cluster.record.open_attempt is None
    history.the_registry_goes_or_comes_back()
    history.the_node_goes_on(steps=3)
    (started,) = cluster.running
    history.work(which=0, steps=4)
    assert cluster.running == [started]
    history.teardown()


def test_an_engine_that_looks_at_a_pod_that_is_gone_leaves_what_the_next_one_owns() -> None:
    """Both have one name; the first engine has yet to hear that the second replaced its pod."""
    history = Undisturbed()
    history.begin(
        engines=2, retry=Retry(), main=(), setup=None, on_change=OnChange.REPLACE,
        keeps=False, keeps_timeout=False, up=True, cached=False,
    )  # fmt: skip
    history.work_with_a_fault(which=1, fault="lost", after=0, die=False)
    history.work(which=0, steps=3)
    history.work(which=1, steps=1)
    history.time_passes(seconds=3)
    history.work(which=1, steps=5)
    history.work(which=0, steps=1)
    history.work(which=1, steps=2)
    history.teardown()


def test_a_pod_whose_record_is_gone_is_refused_also_beside_a_gated_one_that_is_given_up() -> None:
    """The record that gives up the gated pod knows of no attempt: it says nothing of the other."""
    history = begun()
    history.work(which=0, steps=6)
    (pod,) = history.cluster.pods.values()
    assert "schedulingGates" not in pod["spec"]
    history.somebody_deletes_the_record()
    history.crash(which=0)
    history.change_spec()
    history.somebody_forges_a_pod(gated=True, number=1, same_run=False)
    history.teardown()


def test_a_run_that_another_revision_ended_begins_anew_where_its_own_is_read_again() -> None:
    history = begun()
    history.work(which=0, steps=6)
    history.cluster.refuse_pods = "quota"
    history.change_spec()
    history.work(which=0, steps=1)
    record = history.cluster.record
    assert record is not None
    assert record.reason is Reason.SUPERSEDED
    history.runs -= 1
    history.engines[0].job = history._revision()
    history.cluster.asks += 1
    history.teardown()
    assert history.cluster.record is not None
    assert history.cluster.record.state is State.SUCCEEDED
