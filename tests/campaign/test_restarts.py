"""The API server dies in the middle, and two engines meet."""

from dataclasses import replace

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.process import Component
from tests.support.definitions import install_definitions
from tests.support.engine import Engine, finish
from tests.support.objects import Objects

pytestmark = [pytest.mark.node, pytest.mark.registry]


@pytest.mark.soak
@pytest.mark.alone
@pytest.mark.parametrize("source", ["files", "objects"])
def test_all_jobs_finish_although_the_api_server_is_killed_in_the_middle(
    source: str, engine: Engine, objects: Objects, apiserver: Component
) -> None:
    if source == "objects":
        install_definitions(objects.api.client)
        engine = replace(engine, objects=True)
    for number in range(20):
        engine.spec(f"job-{number}", script="sleep 2", files={"a": str(number)})
    process = engine.start()
    objects.api.wait(lambda: len(objects.pods()) >= 5, "some pods")
    apiserver.kill()
    apiserver.start()
    run = finish(process, ends=0)
    assert [len(job["attempts"]) for job in run.result["jobs"]] == [1] * 20
    assert len(objects.pods()) == 20
    assert len(run.stderr.splitlines()) < 120


def test_two_engines_on_one_folder_run_each_job_once(
    engine: Engine, objects: Objects, cluster: Cluster
) -> None:
    for number in range(20):
        engine.spec(f"job-{number}", script="sleep 0.5", files={"a": str(number)})
    before = cluster.audit_position()
    runs = [finish(process) for process in [engine.start(), engine.start()]]
    assert [run.code for run in runs] == [0, 0], [run.stderr for run in runs]
    assert len(objects.pods()) == 20
    created = [
        entry["objectRef"]["name"]
        for entry in cluster.audit_entries("engine/", before)
        if entry["verb"] == "create"
        and entry["objectRef"]["resource"] == "pods"
        and entry["objectRef"]["namespace"] == objects.namespace
        and entry["responseStatus"]["code"] == 201
    ]
    assert len(created) == len(set(created)) == 20
