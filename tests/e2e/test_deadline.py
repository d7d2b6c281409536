"""Timeouts: the job's, the project's, the engine's, and the operator's cap."""

import time
from datetime import UTC, datetime

import pytest

from tests.support.clusters import ClusterUnderTest
from tests.support.engine import Engine, kill
from tests.support.objects import Objects

CONFIG = "apiVersion: jobs.engine/v1alpha1\nkind: EngineConfig\n"
WITHOUT_DEADLINES = "features: {activeDeadlineSeconds: false}\n"
DEFAULTS = "apiVersion: jobs.engine/v1alpha1\nkind: JobDefaults\n"


def deadline(objects: Objects, job: str) -> int | None:
    found: int | None = objects.pod(job)["spec"].get("activeDeadlineSeconds")
    return found


@pytest.mark.real
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


def test_with_the_feature_off_the_pod_has_no_deadline_and_the_engine_keeps_the_timeout(
    engine: Engine, objects: Objects, target: ClusterUnderTest
) -> None:
    config = engine.write("../engine.yaml", CONFIG + WITHOUT_DEADLINES)
    engine.spec("quick", script="true", timeout="5m")
    engine.spec("slow", script=target.script("slow", lasts=60), timeout="3s")
    run = engine.reconcile("--config", str(config), ends=1)
    assert deadline(objects, "quick") is None
    job = run.job("slow")
    assert (job["state"], job["reason"]) == ("Failed", "DeadlineExceeded")
    assert job["message"] == "ran longer than its timeout of 3s"
    objects.api.wait(lambda: len(objects.pods()) == 1, "end of the pod", timeout=60)
    assert engine.status()["slow"]["reason"] == "DeadlineExceeded"
    assert engine.reconcile("--config", str(config), ends=1).job("slow")["changed"] is False


def test_with_the_feature_off_the_operator_has_the_last_word_all_the_same(
    engine: Engine, target: ClusterUnderTest
) -> None:
    text = CONFIG + WITHOUT_DEADLINES + "limits: {maxTimeout: 3s}\n"
    config = engine.write("../engine.yaml", text)
    engine.spec("slow", script=target.script("slow", lasts=60), timeout="9h")
    job = engine.reconcile("--config", str(config), ends=1).job("slow")
    assert job["message"] == "ran longer than its timeout of 3s"


@pytest.mark.clock(1)
def test_an_engine_that_is_started_again_does_not_lengthen_the_timeout_that_it_keeps(
    engine: Engine, objects: Objects, target: ClusterUnderTest
) -> None:
    config = engine.write("../engine.yaml", CONFIG + WITHOUT_DEADLINES)
    engine.spec("slow", script=target.script("slow", lasts=120), timeout="20s")
    process = engine.start("--config", str(config))
    taken_up = datetime.fromisoformat(objects.wait_until_running("slow")["status"]["startTime"])
    time.sleep(max(0.0, 15 - (datetime.now(UTC) - taken_up).total_seconds()))
    kill(process)
    job = engine.reconcile("--config", str(config), ends=1).job("slow")
    assert job["reason"] == "DeadlineExceeded"
    lasted = datetime.fromisoformat(job["finishedAt"]) - taken_up
    assert 20 <= lasted.total_seconds() < 15 + 20


@pytest.mark.real
def test_a_pod_that_no_node_takes_ends_with_the_schedulers_words(
    engine: Engine, objects: Objects
) -> None:
    engine.spec("homeless", script="true", nodeSelector={"no": "such-node"}, startTimeout="3s")
    run = engine.reconcile(ends=7)
    job = run.job("homeless")
    assert job["reason"] == "StartTimeout"
    assert "didn't match" in job["message"]
    assert objects.pods() == []
