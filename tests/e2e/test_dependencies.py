"""Jobs that wait for others: in one go, while the engine stays, and in what the commands say."""

import random

from tests.support.clusters import ClusterUnderTest
from tests.support.engine import Engine
from tests.support.engine_process import EngineProcess, wait_for_state
from tests.support.objects import Objects


def test_each_starts_once_what_it_waits_for_has_ended(
    engine: Engine, target: ClusterUnderTest
) -> None:
    names = [f"job-{number}" for number in range(8)]
    chance = random.Random(8)
    waits = {name: chance.sample(names[:at], min(at, 2)) for at, name in enumerate(names)}
    for name in chance.sample(names, len(names)):
        engine.spec(name, script=target.script(name), dependsOn=waits[name])
    run = engine.reconcile(ends=0)
    jobs = {job["name"]: job for job in run.result["jobs"]}
    for name, others in waits.items():
        for other in others:
            assert jobs[other]["finishedAt"] <= jobs[name]["attempts"][0]["startedAt"]
    assert f"{engine.namespace}/job-7: Queued: waits for " in run.stderr
    again = engine.reconcile(ends=0)
    assert not any(job["changed"] for job in again.result["jobs"])


def test_a_failure_fails_what_waits_for_it_and_its_repair_runs_all_of_it(
    engine: Engine, target: ClusterUnderTest, objects: Objects
) -> None:
    engine.spec("build", script=target.script("build", ends=3))
    engine.spec("test", script=target.script("test"), dependsOn=["build"])
    engine.spec("deploy", script=target.script("deploy"), dependsOn=["test"])
    always = [{"name": "build", "on": "finished"}]
    engine.spec("report", script=target.script("report"), dependsOn=always)
    run = engine.reconcile(ends=1)
    assert {job["name"]: job["reason"] for job in run.result["jobs"]} == {
        "build": "ScriptFailed",
        "test": "DependencyFailed",
        "deploy": "DependencyFailed",
        "report": "Succeeded",
    }
    assert run.job("deploy")["message"].endswith("/test failed (DependencyFailed)")
    assert len(objects.pods()) == 2
    assert not any(job["changed"] for job in engine.reconcile(ends=1).result["jobs"])
    engine.spec("build", script=target.script("build"))
    diff = engine.run("diff", str(engine.folder), ends=1).stdout
    assert f"{engine.namespace}/test: start: " in diff
    assert f"waits for {engine.namespace}/build" in diff
    mended = engine.reconcile(ends=0)
    assert [job["name"] for job in mended.result["jobs"] if not job["changed"]] == ["report"]
    assert len(objects.pods()) == 5


def test_a_job_goes_on_waiting_where_the_other_is_given_up_or_only_to_be_started(
    engine: Engine, target: ClusterUnderTest
) -> None:
    engine.spec("build", script=target.script("build", lasts=2))
    engine.spec("test", script=target.script("test"), dependsOn=["build"])
    applied = engine.reconcile("--wait", "applied", ends=0)
    assert applied.job("test")["message"] == f"waits for {engine.namespace}/build"
    described = engine.run("describe", "test", "-n", engine.namespace, ends=0).stdout
    assert f"Waits for:  {engine.namespace}/build\nNext:       attempt 1 starts" in described
    assert engine.reconcile(ends=0).job("test")["state"] == "Succeeded"


def test_an_engine_that_stays_follows_edits_of_the_order_and_of_what_comes_first(
    engine: Engine, target: ClusterUnderTest
) -> None:
    engine.spec("test", script=target.script("test"), dependsOn=["build"])
    with EngineProcess(engine) as staying:
        staying.wait_for_line("no valid spec has the name build")
        engine.spec("build", script=target.script("build", ends=3))
        staying.wait_for_line("/test: Failed DependencyFailed", within=60)
        engine.spec("build", script=target.script("build"))
        staying.wait_for_line("/test: Succeeded", within=60)
        engine.spec("build", script=target.script("build", ends=3))
        staying.wait_for_line("/build: Failed ScriptFailed", times=2, within=60)
        wait_for_state(engine, "test", "Succeeded")
        engine.spec("last", script=target.script("last"), dependsOn=["build"])
        staying.wait_for_line("/last: Failed DependencyFailed", within=60)
        engine.spec("last", script=target.script("last"), dependsOn=["test"])
        staying.wait_for_line("/last: Succeeded", within=60)
        engine.run("rerun", "build", "-n", engine.namespace, ends=0)
        staying.wait_for_line("/build: Failed ScriptFailed", times=3, within=60)
    assert staying.text.count("/test: Starting") == 1
