"""The engine is killed at random instants, over and over; judged by the server's audit log."""

import os
import random
import subprocess
from collections import Counter
from contextlib import suppress

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.images import Images
from tests.e2e.harness import Engine, kill
from tests.e2e.objects import Objects

pytestmark = [pytest.mark.node, pytest.mark.registry, pytest.mark.timeout(1500)]

KILLS = int(os.environ.get("ENGINE_SOAK_KILLS", "50"))
JOBS_IN_A_WAVE = 20
SEED = int(os.environ.get("ENGINE_SOAK_SEED", "20"))
EXPECTED = {
    "plain": "Succeeded",
    "owns": "Succeeded",
    "fails": "ScriptFailed",
    "falls": "Succeeded",
}


def test_a_job_runs_exactly_once_however_often_the_engine_is_killed(
    engine: Engine, objects: Objects, cluster: Cluster, images: Images
) -> None:
    chance = random.Random(SEED)
    before = cluster.audit_position()
    kills = waves = 0
    while kills < KILLS:
        waves += 1
        _write_wave(engine, images, waves)
        while not _is_over(engine, waves):
            process = engine.start("--concurrency", str(chance.choice((1, 2, 8))))
            with suppress(subprocess.TimeoutExpired):
                process.wait(chance.uniform(0.4, 1.6))
            kills += process.poll() is None
            kill(process)
    final = engine.reconcile()
    assert final.code == 1, final.stderr
    _assert_once(engine, objects, cluster, before, waves)


def _write_wave(engine: Engine, images: Images, wave: int) -> None:
    for number in range(JOBS_IN_A_WAVE):
        match number % 4:
            case 0:
                engine.spec(f"plain-{wave}-{number}", script="sleep 0.3")
            case 1:
                secrets = {"TOKEN": {"value": "anything"}}
                engine.spec(f"owns-{wave}-{number}", script="test $TOKEN", secrets=secrets)
            case 2:
                engine.spec(f"fails-{wave}-{number}", script="exit 3")
            case _:
                policies = ["Never", "IfNotPresent"]
                ref = images.build()
                engine.spec(f"falls-{wave}-{number}", image=ref, script="true", pullPolicy=policies)


def _is_over(engine: Engine, waves: int) -> bool:
    final = ("Succeeded", "Failed")
    over = [name for name, job in engine.status().items() if job["state"] in final]
    return len(over) == waves * JOBS_IN_A_WAVE


def _assert_once(
    engine: Engine, objects: Objects, cluster: Cluster, before: int, waves: int
) -> None:
    jobs = engine.status()
    assert len(jobs) == waves * JOBS_IN_A_WAVE
    reasons = {name: job["reason"] for name, job in jobs.items()}
    assert reasons == {name: EXPECTED[name.partition("-")[0]] for name in jobs}
    attempts = {name: [a["pod"] for a in job["attempts"]] for name, job in jobs.items()}
    assert {n: len(pods) for n, pods in attempts.items()} == {
        n: 2 if n.startswith("falls") else 1 for n in jobs
    }
    assert _bound(objects, cluster, before) == Counter(
        p for pods in attempts.values() for p in pods
    )
    pods = {pod["metadata"]["uid"] for pod in objects.pods()}
    for kind in ("secrets", "configmaps"):
        labels = "app.kubernetes.io/managed-by=engine,jobs.engine/component!=record"
        for item in objects.api.list(kind, objects.namespace, labels=labels):
            (owner,) = item["metadata"]["ownerReferences"]
            assert owner["uid"] in pods


def _bound(objects: Objects, cluster: Cluster, before: int) -> Counter[str]:
    """How many pods of each name were given to the node: each of them was another pod.

    Creates are no measure: the log calls one failed whose client died before the answer.
    """
    bound = {
        (entry["objectRef"]["name"], entry["objectRef"]["uid"])
        for entry in cluster.audit_entries("kube-scheduler/", before)
        if entry["objectRef"].get("subresource") == "binding"
        and entry["objectRef"]["namespace"] == objects.namespace
        and entry["responseStatus"]["code"] == 201
    }
    return Counter(name for name, _ in bound)
