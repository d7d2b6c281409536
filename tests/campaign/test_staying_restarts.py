"""API server and registry go away and come back: the engine that stays goes on by itself."""

import signal
import time

import pytest

from tests.campaign.batches import assert_owned, bound_pods
from tests.cluster.cluster import Cluster
from tests.cluster.images import Images
from tests.cluster.process import Component
from tests.cluster.registry import Registry
from tests.support.engine import Engine
from tests.support.engine_process import EngineProcess, wait_for_state
from tests.support.objects import Objects

pytestmark = [pytest.mark.node, pytest.mark.registry]

AWAY = 8.0
MOST_LINES = 40
JOBS = 12


@pytest.mark.alone
def test_a_restart_of_the_api_server_loses_nothing_doubles_nothing_and_is_told_by_readyz(
    engine: Engine, objects: Objects, cluster: Cluster, apiserver: Component
) -> None:
    before = cluster.audit_position()
    for number in range(JOBS):
        engine.spec(f"early-{number}", script="sleep 6", files={"a": str(number)})
    with EngineProcess(engine) as staying:
        objects.api.wait(lambda: len(objects.pods()) >= JOBS // 2, "some pods")
        apiserver.kill()
        gone = time.monotonic()
        lines = len(staying.lines)
        assert "[-]caches" in staying.wait_for_probe("/readyz", 503)
        noticed = time.monotonic() - gone
        for number in range(JOBS):
            engine.spec(f"late-{number}", script="true", files={"a": str(number)})
        while (left := gone + AWAY - time.monotonic()) > 0:
            assert staying.answer("/readyz")[0] == 503
            time.sleep(min(left, 0.2))
        assert staying.answer("/healthz")[0] == 200
        apiserver.start()
        back = time.monotonic()
        staying.wait_until_ready(60)
        ready = time.monotonic() - back
        told = staying.lines[lines:]
        about_jobs = [line for line in told if "early-" in line or "late-" in line]
        for number in range(JOBS):
            wait_for_state(engine, f"early-{number}", "Succeeded", 120)
            wait_for_state(engine, f"late-{number}", "Succeeded", 120)
        assert staying.process.poll() is None
    assert {len(job["attempts"]) for job in engine.status().values()} == {1}
    assert len(objects.pods()) == 2 * JOBS
    assert set(bound_pods(objects, cluster, before).values()) == {1}
    assert_owned(objects)
    assert len(told) - len(about_jobs) < MOST_LINES, "\n".join(told)
    print(  # noqa: T201 - figures for who runs the campaign
        f"not ready {noticed:.1f} s after the kill, ready {ready:.1f} s after the server, "
        f"{len(told)} lines, of which {len(about_jobs)} about jobs"
    )


@pytest.mark.soak
@pytest.mark.alone
def test_while_the_api_server_hangs_it_is_not_ready_and_afterwards_it_goes_on(
    engine: Engine, objects: Objects, apiserver: Component
) -> None:
    server = apiserver.identity
    assert server is not None
    engine.spec("before", script="true")
    with EngineProcess(engine) as staying:
        staying.wait_for_line("/before: Succeeded", within=60)
        server.signal(signal.SIGSTOP)
        try:
            engine.spec("meanwhile", script="true", files={"a": "b"})
            assert "[-]leader" in staying.wait_for_probe("/readyz", 503)
            time.sleep(4)
        finally:
            server.signal(signal.SIGCONT)
        staying.wait_until_ready()
        staying.wait_for_line("/meanwhile: Succeeded", within=90)
    assert {len(job["attempts"]) for job in engine.status().values()} == {1}
    assert len(objects.pods()) == 2


@pytest.mark.soak
@pytest.mark.alone
def test_after_a_restart_that_compacted_the_past_it_lists_anew_and_hears_again(
    engine: Engine, objects: Objects, cluster: Cluster, apiserver: Component
) -> None:
    engine.spec("before", script="true")
    with EngineProcess(engine) as staying:
        staying.wait_for_line("/before: Succeeded", within=60)
        for number in range(20):
            name = {"metadata": {"name": f"other-{number}"}}
            objects.api.create("configmaps", name, objects.namespace)
        apiserver.kill()
        since = cluster.audit_position()
        apiserver.start()
        staying.wait_until_ready(60)
        engine.spec("after", script="true")
        staying.wait_for_line("/after: Succeeded", within=60)
        engine.run("rerun", "before", "-n", engine.namespace, ends=0)
        staying.wait_for_line("/before: Succeeded", times=2, within=60)
    assert len(objects.pods()) == 3
    listed = {
        entry["objectRef"]["resource"]
        for entry in cluster.audit_entries("engine/", since)
        if entry["verb"] == "list" and entry["objectRef"].get("namespace") == objects.namespace
    }
    assert {"pods", "configmaps"} <= listed, "nothing was compacted: this test shows nothing"


@pytest.mark.alone
def test_a_registry_that_goes_and_comes_back_costs_a_policy_and_no_job(
    engine: Engine, images: Images, registry: Registry
) -> None:
    config = engine.write(
        "../engine.yaml",
        "apiVersion: jobs.engine/v1alpha1\nkind: EngineConfig\npull: {patience: 6s}\n",
    )
    cached, absent = images.build(), images.build()
    images.pull_to_node(cached)
    with EngineProcess(engine, "--config", str(config)) as staying:
        registry.stop()
        both, twice = ["Always", "IfNotPresent"], ["Always", "Always"]
        engine.spec("falls", image=cached, pullPolicy=both, script="true")
        engine.spec("waits", image=absent, pullPolicy=twice, script="true")
        staying.wait_for_line("/falls: Starting", within=60)
        staying.wait_for_line("/waits: Starting", within=60)
        time.sleep(3)
        registry.start()
        staying.wait_for_line("/falls: Succeeded", within=60)
        staying.wait_for_line("/waits: Succeeded", within=60)
    jobs = engine.status()
    for name, policies in (("falls", both), ("waits", twice)):
        found = [attempt["pullPolicies"]["main"] for attempt in jobs[name]["attempts"]]
        assert found == policies
        first = jobs[name]["attempts"][0]
        assert (first["outcome"], first["class"]) == ("ImagePullFailed", "transient")
        assert "connection refused" in first["message"]
