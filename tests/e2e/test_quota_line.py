"""Waiting for room: nobody runs beyond the quota, everybody runs in the end, in order."""

import threading
import time
from collections.abc import Iterable
from datetime import UTC, datetime

import pytest

from tests.e2e.conftest import Quota
from tests.support.clusters import ClusterUnderTest
from tests.support.engine import Engine
from tests.support.objects import Objects
from tests.support.recorder import Event


def crowd(events: Iterable[Event]) -> tuple[int, int]:
    """How many pods were unfinished at most, and how many of them the quota's controller missed.

    The controller counts from a cache: it may write that fewer pods are there than had been let in
    before, and more are let in then. What it wrote is the proof; nothing else excuses an excess.
    """
    unfinished: set[str] = set()
    most = missed = 0
    for event in sorted(events, key=lambda event: int(event.object["metadata"]["resourceVersion"])):
        if event.object["kind"] == "ResourceQuota":
            counted = int(event.object["status"]["used"]["pods"])
            missed = max(missed, len(unfinished) - counted)
            continue
        over = event.object["status"]["phase"] in ("Succeeded", "Failed")
        gone = over or event.type == "DELETED"
        unfinished = unfinished - {event.name} if gone else unfinished | {event.name}
        most = max(most, len(unfinished))
    return most, missed


@pytest.mark.real
def test_ten_jobs_in_a_quota_of_two_run_two_at_a_time_and_all_finish(
    engine: Engine, objects: Objects, target: ClusterUnderTest, limit: Quota
) -> None:
    limit({"pods": "2"}, name="two")
    for number in range(10):
        engine.spec(f"job-{number}", script=target.script(f"job-{number}", lasts=0.5))
    with (
        objects.api.watch("pods", objects.namespace) as pods,
        objects.api.watch("resourcequotas", objects.namespace) as quotas,
    ):
        run = engine.reconcile("--timeout", "110s", ends=0)
        most, missed = crowd([*pods.events, *quotas.events])
    assert 2 <= most <= 2 + missed
    assert target.counts_late or not missed
    assert [job["state"] for job in run.result["jobs"]] == ["Succeeded"] * 10
    assert [len(job["attempts"]) for job in run.result["jobs"]] == [1] * 10


@pytest.mark.clock(1)
def test_a_quota_that_opens_lets_the_jobs_run_without_anybody_touching_a_file(
    engine: Engine, objects: Objects, limit: Quota
) -> None:
    limit({"pods": "0"}, name="closed")
    for number in range(3):
        engine.spec(f"job-{number}", script="true")
    opened: list[datetime] = []

    def open_it() -> None:
        time.sleep(20)
        objects.api.patch(
            "resourcequotas", "closed", {"spec": {"hard": {"pods": "10"}}}, objects.namespace
        )
        opened.append(datetime.now(UTC))

    opener = threading.Thread(target=open_it)
    opener.start()
    run = engine.reconcile("--timeout", "100s")
    opener.join()
    assert run.code == 0, run.stderr
    assert {job["state"] for job in run.result["jobs"]} == {"Succeeded"}
    for pod in objects.pods():
        made = datetime.fromisoformat(pod["metadata"]["creationTimestamp"])
        assert (made - opened[0]).total_seconds() < 20


def test_a_queued_job_tells_its_place_and_how_long_it_has_waited(
    engine: Engine, limit: Quota
) -> None:
    limit({"pods": "0"}, name="closed")
    for number in range(3):
        engine.spec(f"job-{number}", script="true")
    engine.reconcile("--timeout", "6s", ends=5)
    queue = [job["queue"] for job in engine.status().values()]
    assert sorted(place["position"] for place in queue) == [1, 2, 3]
    assert all(place["waitedSeconds"] > 0 for place in queue)
    table = engine.run("status", "-n", engine.namespace).stdout
    assert "1 of 3 in the queue" in table
    assert "exceeded quota: closed" in table
