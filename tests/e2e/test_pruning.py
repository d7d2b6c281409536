"""Pruning jobs that ran: what goes, what remains, and that nothing runs twice for it."""

import time
from pathlib import Path

import pytest

from tests.support.clusters import ClusterUnderTest
from tests.support.engine import CommandResult, Engine
from tests.support.objects import Objects


def prune(engine: Engine, *arguments: str) -> CommandResult:
    return engine.run("prune", "-n", engine.namespace, "-o", "json", *arguments)


def let_expire(objects: Objects, job: str) -> str:
    name = str(objects.pod(job)["metadata"]["name"])
    patch = {"metadata": {"annotations": {"jobs.engine/ttl": "0"}}}
    objects.api.patch("pods", name, patch, objects.namespace)
    time.sleep(2.1)
    return name


def kinds(run: CommandResult, action: str = "deleted") -> list[str]:
    return sorted(entry["kind"] for entry in run.result["pruned"] if entry["action"] == action)


@pytest.mark.real
def test_the_pod_goes_with_what_it_owns_and_its_job_stays_done(
    engine: Engine, objects: Objects
) -> None:
    engine.spec("job", script="true", secrets={"A": {"value": "anything"}})
    engine.reconcile(ends=0)
    let_expire(objects, "job")
    run = prune(engine)
    assert run.code == 0, run.stderr
    assert kinds(run) == ["Pod"]
    assert set(kinds(run, "kept")) <= {"ConfigMap", "Secret"}  # or collected with it already
    objects.wait_until_clean()
    assert engine.status()["job"]["state"] == "Succeeded"
    again = engine.reconcile()
    assert (again.code, again.job("job")["changed"]) == (0, False)
    assert objects.pods() == []


@pytest.mark.real
def test_a_running_pod_leaves_a_cancelled_job(
    engine: Engine, objects: Objects, target: ClusterUnderTest, tmp_path: Path
) -> None:
    engine.spec("job", script=f"echo begun\n{target.script('job', lasts=300)}")
    engine.reconcile("--wait", "applied", ends=0)
    objects.wait_until_running("job")
    let_expire(objects, "job")
    run = prune(engine)
    assert run.code == 0, run.stderr
    status = engine.status()["job"]
    assert (status["state"], status["reason"]) == ("Cancelled", "Cancelled")
    assert status["message"].startswith("pruned before it had finished: ttl 0s, age ")
    objects.api.wait(lambda: objects.pods() == [], "pod gone")
    assert engine.reconcile().job("job")["changed"] is False
    assert objects.pods() == []


def test_an_outcome_that_nobody_recorded_is_recorded_before_the_pod_goes(
    engine: Engine, objects: Objects, target: ClusterUnderTest
) -> None:
    engine.spec("job", script=target.script("job", lasts=1, ends=3))
    engine.reconcile("--wait", "applied", ends=0)
    objects.api.wait(
        lambda: objects.pod("job")["status"]["phase"] == "Failed", "end of the container"
    )
    assert engine.status()["job"]["state"] in ("Starting", "Running")
    let_expire(objects, "job")
    assert prune(engine).code == 0
    status = engine.status()["job"]
    assert (status["state"], status["reason"], status["exitCode"]) == ("Failed", "ScriptFailed", 3)


def test_a_removed_spec_takes_its_running_job_along(
    engine: Engine, objects: Objects, target: ClusterUnderTest
) -> None:
    engine.spec("stays", script="true")
    engine.spec(
        "gone", script=target.script("gone", lasts=300), secrets={"A": {"value": "anything"}}
    )
    source = ("--source", f"source-{objects.namespace[-8:]}")
    engine.reconcile("--wait", "applied", *source, ends=0)
    objects.wait_until_running("gone")
    (engine.folder / "gone.yaml").unlink()
    run = engine.reconcile("--prune", *source, ends=0)
    assert run.result["pruned"][-1]["name"] == "gone.record"
    assert list(engine.status()) == ["stays"]
    assert [pod["metadata"]["labels"]["jobs.engine/job"] for pod in objects.pods()] == ["stays"]


def test_ttl_after_finished_is_written_on_the_pod_and_prunes_it(
    engine: Engine, objects: Objects
) -> None:
    engine.spec("job", script="true", ttlAfterFinished={"success": "8s"})
    engine.reconcile(ends=0)
    assert "jobs.engine/expires-at" in objects.pod("job")["metadata"]["annotations"]
    time.sleep(9)
    run = engine.reconcile()
    assert kinds(run) == ["Pod"]
    assert run.job("job")["changed"] is False
    assert objects.api.wait(lambda: objects.pods() == [], "pod gone")


def test_what_a_spec_says_is_to_stay_is_protected_however_old_it_is(
    engine: Engine, objects: Objects
) -> None:
    secrets = {"A": {"value": "anything"}}
    engine.spec("lasts", script="true", secrets=secrets, ttl="forever")
    engine.spec("held", script="true", secrets=secrets, ttl="1s", hold=True)
    engine.reconcile(ends=0)
    time.sleep(2.1)
    run = prune(engine)
    assert run.code == 0, run.stderr
    reasons = {
        e["name"].partition("-")[0]: e["reason"] for e in run.result["pruned"] if e["kind"] == "Pod"
    }
    assert reasons == {"lasts": "ttl forever", "held": "jobs.engine/hold is true"}
    assert kinds(run) == []
    assert len(objects.pods()) == 2
    assert len(objects.owned()) == 4


def test_what_a_source_left_in_a_namespace_that_no_spec_names_any_more_goes_and_ages(
    engine: Engine, objects: Objects
) -> None:
    api, own, other = objects.api, engine.namespace, f"{objects.namespace}-dev"
    engine.environment["ENGINE_SOURCE"] = own
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": other}}
    api.create("namespaces", body)
    api.wait(lambda: api.find("serviceaccounts", "default", other), "the account of its pods")
    try:
        engine.namespace = other
        engine.spec("left", script="true")
        engine.reconcile(ends=0)
        (engine.folder / "left.yaml").unlink()
        left = Objects(api, other)
        let_expire(left, "left")
        engine.namespace = own
        engine.spec("lives", script="true")
        run = engine.reconcile(ends=0)
        assert [(e["namespace"], e["action"]) for e in run.result["pruned"]] == [(other, "deleted")]
        api.wait(lambda: left.pods() == [], "end of the pod")
        engine.namespace = other
        assert engine.status()["left"]["specGoneSince"]
    finally:
        api.delete("namespaces", other)
