"""An engine that lost a job while it was paused writes nothing more for it."""

from dataclasses import replace
from itertools import chain, repeat

import pytest

from tests.unit.builders import make_job
from tests.unit.reconcile.model_cluster import Cluster
from tests.unit.reconcile.model_engine import Engine

JOB = make_job(secrets={"TOKEN": {"value": "anything"}})


@pytest.mark.parametrize("steps", range(5))
def test_an_engine_that_loses_a_job_between_two_steps_takes_no_further_step(steps: int) -> None:
    """Another engine may have taken over, and may go by a newer spec."""
    cluster = Cluster()
    engine = Engine(cluster, JOB)
    engine.step()
    engine.step()
    is_own = chain(repeat(True, steps), repeat(False))
    engine._reconciler = replace(engine._reconciler, owns=lambda _key: next(is_own))
    engine.client.actions = 9
    result = engine._reconciler.reconcile(engine._state)
    assert (result.finished, result.requeue_at) == (False, cluster.now)
    pods = [*cluster.pods.values()]
    assert bool(pods) == (steps > 0)
    assert bool(cluster.dependents) == (steps > 1)
    assert bool(cluster.record) == (steps > 2)
    assert all("schedulingGates" in pod["spec"] for pod in pods) == (steps < 4)
