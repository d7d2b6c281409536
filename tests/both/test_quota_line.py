"""Waiting for room: nobody runs beyond the quota, everybody runs in the end, in order."""

import threading
import time

from tests.both.conftest import Quota, World
from tests.e2e.harness import Engine
from tests.e2e.objects import Objects


def test_ten_jobs_in_a_quota_of_two_run_two_at_a_time_and_all_finish(
    engine: Engine, objects: Objects, world: World, limit: Quota
) -> None:
    limit({"pods": "2"}, name="two")
    for number in range(10):
        engine.spec(f"job-{number}", script=world.plays(f"job-{number}", lasts=0.5))
    with objects.api.watch("pods", objects.namespace) as pods:
        run = engine.reconcile("--timeout", "110s")
        assert run.code == 0, run.stderr
        unfinished: set[str] = set()
        most = 0
        for event in pods.events:
            over = event.type == "DELETED" or event.object["status"]["phase"] in (
                "Succeeded",
                "Failed",
            )
            unfinished = unfinished - {event.name} if over else unfinished | {event.name}
            most = max(most, len(unfinished))
    assert most == 2
    assert [job["state"] for job in run.result["jobs"]] == ["Succeeded"] * 10
    assert [len(job["attempts"]) for job in run.result["jobs"]] == [1] * 10


def test_a_quota_that_opens_lets_the_jobs_run_without_anybody_touching_a_file(
    engine: Engine, objects: Objects, limit: Quota
) -> None:
    limit({"pods": "0"}, name="closed")
    for number in range(3):
        engine.spec(f"job-{number}", script="true")
    opened: list[float] = []

    def open_it() -> None:
        time.sleep(20)
        objects.api.patch(
            "resourcequotas", "closed", {"spec": {"hard": {"pods": "10"}}}, objects.namespace
        )
        opened.append(time.monotonic())

    opener = threading.Thread(target=open_it)
    opener.start()
    run = engine.reconcile("--timeout", "100s")
    ended = time.monotonic()
    opener.join()
    assert run.code == 0, run.stderr
    assert {job["state"] for job in run.result["jobs"]} == {"Succeeded"}
    assert ended - opened[0] < 20


def test_a_queued_job_tells_its_place_and_how_long_it_has_waited(
    engine: Engine, limit: Quota
) -> None:
    limit({"pods": "0"}, name="closed")
    for number in range(3):
        engine.spec(f"job-{number}", script="true")
    assert engine.reconcile("--timeout", "3s").code == 5
    queue = [job["queue"] for job in engine.status().values()]
    assert sorted(place["position"] for place in queue) == [1, 2, 3]
    assert all(place["waitedSeconds"] > 0 for place in queue)
    table = engine.run("status", "-n", engine.namespace).stdout
    assert "1st of 3 in the queue" in table
    assert "exceeded quota: closed" in table
