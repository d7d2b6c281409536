"""Random histories of edits, crashes and reruns: a pod starts for each reason to, and for no other.

The real reconciler plays one job on `model_cluster`. `Expected` counts what should have started: it
reads the edits and the ends of containers alone, never a hash, a record or a pod.
"""

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.api.model import Job
from engine.status.outcome import Reason
from tests.unit.builders import document, load_document
from tests.unit.reconcile.model_cluster import Cluster
from tests.unit.reconcile.model_engine import Engine

ABSENT = None
ROUNDS = 120
RETRIED = ["ScriptFailed"]
# (written, meant): two values that mean the same are no change.
RUNS: dict[str, list[tuple[Any, Any]]] = {
    "image": [("a:1", 1), ("b:1", 2)],
    "env": [(ABSENT, 0), ({}, 0), ({"A": "1"}, 1)],
    "template": [(ABSENT, 0), ("job", 0)],
    "rerun": [(ABSENT, 0), ("", 0), ("again", 1)],
    "files": [(ABSENT, 0), ({}, 0), ({"a.txt": "1"}, 1)],
    "securityContext": [
        (ABSENT, 0), ({"allowPrivilegeEscalation": False}, 0), ({"runAsUser": 7}, 1),
    ],
}  # fmt: skip
TRIED: dict[str, list[tuple[Any, Any]]] = {
    "timeout": [(ABSENT, 3600), ("1h", 3600), (3600, 3600), ("30m", 1800), ("2h", 7200)],
    "startTimeout": [(ABSENT, 600), ("10m", 600), ("20m", 1200)],
    "onChange": [(ABSENT, "Replace"), ("Replace", "Replace"), ("Wait", "Wait")],
    "pullPolicy": [(ABSENT, 0), ("IfNotPresent", 1)],
    "retry": [
        (ABSENT, 0), ({"max": 0}, 0),
        ({"max": 1, "on": RETRIED}, 1), ({"max": 2, "on": RETRIED}, 2),
    ],
}  # fmt: skip
KEPT: dict[str, list[tuple[Any, Any]]] = {
    "ttl": [(ABSENT, 0), ("1d", 1), ("2d", 2)],
    "hold": [(ABSENT, 0), (False, 0), (True, 1)],
    "ttlAfterFinished": [(ABSENT, 0), ({"success": "1h", "failure": "2h"}, 1)],
    "labels": [(ABSENT, 0), ({"team": "web"}, 1), ({"team": "api"}, 2)],
    "annotations": [(ABSENT, 0), ({"a": "b"}, 1)],
}
FIELDS = {**RUNS, **TRIED, **KEPT}
CHOICES = [(name, which) for name, values in FIELDS.items() for which in range(len(values))]
EDIT = st.tuples(st.just("edit"), st.sampled_from(CHOICES))
STEP = st.one_of(
    EDIT,
    EDIT,
    EDIT,
    st.tuples(st.just("exit"), st.sampled_from((0, 3))),
    st.tuples(st.just("rerun"), st.none()),
    st.tuples(st.just("crash"), st.integers(0, 6)),
    st.tuples(st.just("fault"), st.sampled_from(("lost", "failed"))),
    st.tuples(st.just("look"), st.none()),
)


@dataclass
class Expected:
    """How often a pod should have started, by the edits, the reruns and the ends alone."""

    spec: dict[str, int] = field(default_factory=lambda: dict.fromkeys(FIELDS, 0))
    """Which value each field has by now."""
    starts: int = 1
    state: str = "running"
    ran: tuple[Any, ...] = ()
    """What runs, or ran last."""
    failed_with: tuple[Any, ...] = ()
    """How what failed was tried."""
    failures: int = 0
    """Of this run."""

    def __post_init__(self) -> None:
        self.ran = self.meant(RUNS)

    def meant(self, kind: dict[str, list[tuple[Any, Any]]]) -> tuple[Any, ...]:
        return tuple(FIELDS[name][self.spec[name]][1] for name in kind)

    def value(self, name: str) -> Any:
        return FIELDS[name][self.spec[name]][1]

    def start(self) -> None:
        self.starts += 1
        self.state, self.ran, self.failures = "running", self.meant(RUNS), 0

    def look(self) -> None:
        """An engine has read the spec as it is now."""
        is_changed = self.meant(RUNS) != self.ran
        waits = self.state == "running" and self.value("onChange") == "Wait"
        is_anew = self.state == "failed" and self.meant(TRIED) != self.failed_with
        if is_anew or (is_changed and not waits):
            self.start()

    def end(self, code: int) -> None:
        if self.meant(RUNS) != self.ran:
            self.start()
        elif code == 0:
            self.state = "succeeded"
        elif self.failures < self.value("retry"):
            self.starts, self.failures = self.starts + 1, self.failures + 1
        else:
            self.state, self.failed_with = "failed", self.meant(TRIED)

    def job(self) -> Job:
        """The spec as it is written now."""
        written = {name: FIELDS[name][which][0] for name, which in self.spec.items()}
        about = {name: written.pop(name) or {} for name in ("labels", "annotations")}
        own = document(secrets={"TOKEN": {"value": "anything"}}, **written)
        own["metadata"] |= about
        return load_document(own).jobs[0]


class History:
    """One job of one engine, which may die at any time and come back."""

    def __init__(self) -> None:
        self.expected = Expected()
        self.cluster = Cluster(retried=frozenset(Reason))
        self.engine = Engine(self.cluster, self.expected.job())
        self.settle()

    def settle(self) -> None:
        """Until the job is over, or its pod runs and nothing else happens."""
        cluster = self.cluster
        for _ in range(ROUNDS):
            before = cluster.serial
            self.engine.hear(len(cluster.log))
            result = self.engine.work()
            for pod in list(cluster.pods.values()):
                cluster.run_node(pod)
            cluster.collect_garbage()
            is_over = result is not None and result.finished
            if before == cluster.serial and (is_over or cluster.running):
                break
            cluster.pass_time(10)
        else:
            raise AssertionError(f"does not settle: {cluster.record} {cluster.pods}")
        # Which number may follow which outcome is another test's; here they are counted.
        cluster.forgotten |= {uid for _, _, uid in cluster.starts}
        self.expected.look()
        assert len(cluster.starts) == self.expected.starts, self.expected
        assert bool(cluster.running) == (self.expected.state == "running"), self.expected

    def take(self, what: str, given: Any) -> None:
        record = self.cluster.record
        match what:
            case "edit":
                self.expected.spec[given[0]] = given[1]
                self.engine.job = self.expected.job()
            case "exit" if self.cluster.running:
                self.settle()
                self.cluster.exit_main(self.cluster.running[0], given)
                self.expected.end(given)
                self.settle()
            case "rerun" if record is not None and record.state.is_final:
                self.settle()
                record = self.cluster.record
                if record is not None and record.state.is_final:
                    self.cluster.rerun_by_hand(record)
                    self.engine = self.engine.crash()  # it reads the record, as by its watch
                    self.expected.start()
                self.settle()
            case "crash":
                for _ in range(given):
                    self.engine.hear(len(self.cluster.log))
                    self.engine.step()
                self.engine = self.engine.crash()
                self.settle()
            case "fault":
                self.engine.client.fault, self.engine.client.writes_before_fault = given, 0
                self.engine.step()
                self.settle()
            case "look":
                self.settle()


@settings(max_examples=100, deadline=None)
@given(steps=st.lists(STEP, min_size=10, max_size=30))
def test_pods_start_for_changes_of_what_runs_for_reruns_and_for_retries_alone(
    steps: list[tuple[str, Any]],
) -> None:
    history = History()
    for what, given_ in steps:
        history.take(what, given_)
    history.settle()
    writes = history.cluster.writes
    history.engine = history.engine.crash()
    history.settle()
    assert history.cluster.writes == writes, "a write although nothing changed"


def test_a_failure_that_was_judged_by_an_edit_is_not_tried_again_for_it() -> None:
    history = History()
    history.take("edit", ("timeout", 3))
    history.take("exit", 3)
    assert len(history.cluster.starts) == 1


def test_from_a_to_b_and_back_to_a_runs_three_times() -> None:
    history = History()
    for which in (1, 0):
        history.take("exit", 0)
        history.take("edit", ("image", which))
        history.settle()
    assert len(history.cluster.starts) == 3


def test_a_longer_timeout_tries_a_failed_job_again_once_and_a_success_never() -> None:
    history = History()
    history.take("exit", 3)
    for value in (4, 4, 4):
        history.take("edit", ("timeout", value))
        history.settle()
    assert len(history.cluster.starts) == 2
    history.take("exit", 0)
    history.take("edit", ("timeout", 3))
    history.settle()
    assert len(history.cluster.starts) == 2


@pytest.mark.parametrize("end", [None, 0, 3], ids=["running", "succeeded", "failed"])
def test_each_edit_alone_and_back_starts_what_it_should(end: int | None) -> None:
    for name, which in CHOICES:
        history = History()
        if end is not None:
            history.take("exit", end)
        for value in (which, 0):
            history.take("edit", (name, value))
            history.settle()
