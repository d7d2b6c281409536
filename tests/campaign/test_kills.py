"""The engine is killed at random instants, over and over; judged by the server's audit log."""

import os
import random
import subprocess
import time
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from tests.campaign.batches import (
    JOBS_IN_A_BATCH,
    assert_ended_as_specified,
    assert_nothing_left,
    bound_pods,
    outcomes_of,
    write_batch,
)
from tests.campaign.troubles import Troubles
from tests.cluster.cluster import Cluster
from tests.cluster.images import Images
from tests.cluster.node import Node
from tests.support.definitions import install_definitions
from tests.support.engine import Engine, kill
from tests.support.fault_campaign import LOST
from tests.support.objects import Objects

pytestmark = [pytest.mark.node, pytest.mark.registry, pytest.mark.timeout(3000)]

KILLS = int(os.environ.get("ENGINE_SOAK_KILLS", "8"))
SEED = int(os.environ.get("ENGINE_SOAK_SEED", "20"))


@pytest.mark.parametrize("source", ["files", pytest.param("objects", marks=pytest.mark.soak)])
def test_a_job_runs_exactly_once_however_often_the_engine_is_killed(
    source: str,
    engine: Engine,
    objects: Objects,
    cluster: Cluster,
    images: Images,
    second_node: Node,
    tmp_path: Path,
) -> None:
    """A kill is to fall anywhere in a run, on a busy machine too: the time of a command tells how
    long one takes.
    """
    if source == "objects":
        install_definitions(objects.api.client)
        engine = replace(engine, objects=True)
    author = replace(engine)
    chance = random.Random(SEED)
    before = cluster.audit_position()
    kills = batches = 0
    with Troubles(engine, objects, cluster, second_node, chance, tmp_path) as troubles:
        while kills < KILLS:
            batches += 1
            write_batch(author, images, batches)
            while True:
                began = time.monotonic()
                if _is_over(engine, batches):
                    break
                unit = time.monotonic() - began
                troubles.change()
                process = engine.start("--concurrency", str(chance.choice((1, 2, 8))))
                with suppress(subprocess.TimeoutExpired):
                    process.wait(unit * chance.uniform(0.8, 3.2))
                kills += process.poll() is None
                kill(process)
        troubles.end()
        engine.reconcile(timeout=600)
        jobs = engine.status()
        assert len(jobs) == batches * JOBS_IN_A_BATCH
        assert_ended_as_specified(jobs)
        is_lost = any(job["reason"] in LOST for job in jobs.values())
        again = engine.reconcile(ends=7 if is_lost else 1)
        assert not any(job["changed"] for job in again.result["jobs"])
    bound = bound_pods(objects, cluster, before)
    assert bound == Counter(one["pod"] for job in jobs.values() for one in job["attempts"])
    assert set(bound.values()) == {1}
    assert_nothing_left(objects, jobs)
    print(  # noqa: T201 - for `make soak`
        f"{kills} kills, {len(jobs)} jobs, {len(bound)} pods, {dict(outcomes_of(jobs))}, "
        f"{dict(Counter(troubles.log))}"
    )


def _is_over(engine: Engine, batches: int) -> bool:
    final = ("Succeeded", "Failed")
    over = [name for name, job in engine.status().items() if job["state"] in final]
    return len(over) == batches * JOBS_IN_A_BATCH
