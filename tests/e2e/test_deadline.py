"""Timeouts: the job's, the project's, the engine's, and the operator's cap."""

from tests.support.clusters import ClusterUnderTest
from tests.support.engine import Engine
from tests.support.objects import Objects

CONFIG = "apiVersion: jobs.engine/v1alpha1\nkind: EngineConfig\n"
DEFAULTS = "apiVersion: jobs.engine/v1alpha1\nkind: JobDefaults\n"


def deadline(objects: Objects, job: str) -> int | None:
    found: int | None = objects.pod(job)["spec"].get("activeDeadlineSeconds")
    return found


def test_a_job_that_runs_longer_than_its_timeout_has_exceeded_its_deadline(
    engine: Engine, objects: Objects, target: ClusterUnderTest
) -> None:
    engine.spec("slow", script=target.script("slow", lasts=30), timeout="5s")
    run = engine.reconcile(ends=1)
    assert run.job("slow")["reason"] == "DeadlineExceeded"
    assert engine.status()["slow"]["reason"] == "DeadlineExceeded"
    assert objects.pod("slow")["status"]["reason"] == "DeadlineExceeded"


def test_the_nearest_timeout_counts_and_the_operator_has_the_last_word(
    engine: Engine, objects: Objects
) -> None:
    config = engine.write(
        "../engine.yaml", CONFIG + "defaults: {timeout: 20m}\nlimits: {maxTimeout: 30m}\n"
    )
    engine.write("project/defaults.yaml", DEFAULTS + "spec: {timeout: 10m}\n")
    engine.spec("own", file="project/own.yaml", script="true", timeout="5m")
    engine.spec("projects", file="project/projects.yaml", script="true")
    engine.spec("engines", script="true")
    engine.spec("capped", script="true", timeout="9h")
    run = engine.reconcile("--config", str(config), ends=0)
    found = {job: deadline(objects, job) for job in ("own", "projects", "engines", "capped")}
    assert found == {"own": 300, "projects": 600, "engines": 1200, "capped": 1800}
    assert "spec.timeout 9h is cut to 30m (limits.maxTimeout)" in run.stderr


def test_with_the_feature_off_the_pod_has_no_deadline(engine: Engine, objects: Objects) -> None:
    config = engine.write("../engine.yaml", CONFIG + "features: {activeDeadlineSeconds: false}\n")
    engine.spec("endless", script="true", timeout="5m")
    engine.reconcile("--config", str(config), ends=0)
    assert deadline(objects, "endless") is None


def test_a_pod_that_no_node_takes_ends_with_the_schedulers_words(
    engine: Engine, objects: Objects
) -> None:
    engine.spec("homeless", script="true", nodeSelector={"no": "such-node"}, startTimeout="3s")
    run = engine.reconcile(ends=7)
    job = run.job("homeless")
    assert job["reason"] == "StartTimeout"
    assert "didn't match" in job["message"]
    assert objects.pods() == []
