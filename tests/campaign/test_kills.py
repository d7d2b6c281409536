"""The engine is killed at random instants, over and over; judged by the server's audit log."""

import os
import random
import subprocess
import time
from collections import Counter
from contextlib import suppress

import pytest

from tests.campaign.batches import (
    EXPECTED,
    JOBS_IN_A_BATCH,
    assert_owned,
    attempts_of,
    bound_pods,
    kind_of,
    write_batch,
)
from tests.cluster.cluster import Cluster
from tests.cluster.images import Images
from tests.cluster.quota import set_quota
from tests.support.engine import Engine, kill
from tests.support.objects import Objects

pytestmark = [pytest.mark.node, pytest.mark.registry, pytest.mark.timeout(1500)]

KILLS = int(os.environ.get("ENGINE_SOAK_KILLS", "20"))
SEED = int(os.environ.get("ENGINE_SOAK_SEED", "20"))
NARROW = "narrow"


def test_a_job_runs_exactly_once_however_often_the_engine_is_killed(
    engine: Engine, objects: Objects, cluster: Cluster, images: Images
) -> None:
    chance = random.Random(SEED)
    before = cluster.audit_position()
    kills = batches = 0
    while kills < KILLS:
        batches += 1
        write_batch(engine, images, batches)
        unit = _time_of_a_command(engine)
        while not _is_over(engine, batches):
            _change_quota(objects, chance)
            process = engine.start("--concurrency", str(chance.choice((1, 2, 8))))
            with suppress(subprocess.TimeoutExpired):
                process.wait(unit * chance.uniform(0.8, 3.2))
            kills += process.poll() is None
            kill(process)
    _remove_quota(objects)
    engine.reconcile(ends=1)
    jobs = engine.status()
    assert len(jobs) == batches * JOBS_IN_A_BATCH
    reasons = {name: job["reason"] for name, job in jobs.items()}
    assert reasons == {name: EXPECTED[kind_of(name)] for name in jobs}
    attempts = {name: [a["pod"] for a in job["attempts"]] for name, job in jobs.items()}
    assert {n: len(pods) for n, pods in attempts.items()} == {n: attempts_of(n) for n in jobs}
    bound = bound_pods(objects, cluster, before)
    assert bound == Counter(pod for pods in attempts.values() for pod in pods)
    assert_owned(objects)


def _change_quota(objects: Objects, chance: random.Random) -> None:
    """Now and then there is room for a few ConfigMaps alone: records are refused as well."""
    _remove_quota(objects)
    if chance.random() < 0.3:
        there = len(objects.api.list("configmaps", objects.namespace))
        room = {"configmaps": there + chance.randint(0, 3)}
        set_quota(objects.api, objects.namespace, room, name=NARROW)


def _remove_quota(objects: Objects) -> None:
    if objects.api.find("resourcequotas", NARROW, objects.namespace) is not None:
        objects.api.delete("resourcequotas", NARROW, objects.namespace)


def _time_of_a_command(engine: Engine) -> float:
    """Seconds. A kill is to fall anywhere in a run, on a busy machine too."""
    began = time.monotonic()
    engine.status()
    return time.monotonic() - began


def _is_over(engine: Engine, batches: int) -> bool:
    final = ("Succeeded", "Failed")
    over = [name for name, job in engine.status().items() if job["state"] in final]
    return len(over) == batches * JOBS_IN_A_BATCH
