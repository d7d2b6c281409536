"""What others may do between two steps of a job, and what the engine does then."""

from collections.abc import Callable
from itertools import chain, repeat
from typing import Any

import pytest
from msgspec.structs import replace

from engine.reconcile.reconciler import Result
from tests.unit.builders import make_job
from tests.unit.reconcile.model_cluster import Cluster
from tests.unit.reconcile.model_engine import Engine

JOB = make_job(secrets={"TOKEN": {"value": "anything"}})


def start(cluster: Cluster, **hooks: Callable[..., Any]) -> Result:
    """One reconcile of a job without a pod, as far as it goes."""
    engine = Engine(cluster, JOB)
    engine.step()
    engine.step()
    engine.client.actions = 9
    return replace(engine._reconciler, **hooks).reconcile(engine._state)


@pytest.mark.parametrize("steps", range(5))
def test_an_engine_that_loses_a_job_between_two_steps_takes_no_further_step(steps: int) -> None:
    """It was paused, another engine has taken over, and may go by a newer spec."""
    cluster, is_own = Cluster(), chain(repeat(True, steps), repeat(False))
    result = start(cluster, owns=lambda _key: next(is_own))
    assert (result.finished, result.requeue_at) == (False, cluster.now)
    pods = [*cluster.pods.values()]
    assert bool(pods) == (steps > 0)
    assert bool(cluster.dependents) == (steps > 1)
    assert bool(cluster.record) == (steps > 2)
    assert all("schedulingGates" in pod["spec"] for pod in pods) == (steps < 4)


def test_the_next_job_in_a_quotas_line_waits_for_the_pod_of_the_one_before_and_for_no_more() -> (
    None
):
    cluster, seen = Cluster(), list[tuple[object, ...]]()

    def look(key: object) -> None:
        seen.append((key, len(cluster.pods), len(cluster.dependents)))

    assert start(cluster, on_created=look).started
    assert seen == [(JOB.key, 1, 0)]


def test_what_a_recorded_pod_owns_stays_when_another_engine_looks_at_it_again() -> None:
    cluster = Cluster()
    engine = Engine(cluster, JOB)
    engine.work(5)  # two to begin with, the pod, its Secret and ConfigMap, the record
    assert cluster.record is not None
    made = {name: owned["metadata"]["uid"] for name, owned in cluster.dependents.items()}
    engine.crash().work()
    assert made
    assert {name: one["metadata"]["uid"] for name, one in cluster.dependents.items()} == made
    assert [pod for pod in cluster.pods.values() if "schedulingGates" in pod["spec"]] == []
