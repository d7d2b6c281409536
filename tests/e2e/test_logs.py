"""What a job's containers wrote reaches the user: on failure by itself, else when asked for."""

import base64
from pathlib import Path

import pytest

from engine.sandbox import Run, Sandbox
from tests.support.clusters import ClusterUnderTest, SandboxCluster
from tests.support.engine import Engine, Process, finish
from tests.support.objects import Objects


def says(target: ClusterUnderTest, job: str, *lines: str, ends: int = 0, lasts: float = 0) -> str:
    """A script of a job that writes these lines, and then lasts so long."""
    if isinstance(target, SandboxCluster):
        scene = Run(duration=max(lasts, 0.05), exit_code=ends, log=lines)
        target.sandbox.node.will(scene, pod=f"{job}-*", container="main")
    written = "".join(f"echo '{line}'\n" for line in lines)
    return f"{written}sleep {lasts}\nexit {ends}\n"


def logs(engine: Engine, *arguments: str) -> Process:
    return engine.begin("logs", "-n", engine.namespace, *arguments)


@pytest.mark.real
def test_the_end_of_the_failed_containers_log_stands_under_the_job(
    target: ClusterUnderTest, engine: Engine
) -> None:
    lines = [f"line {number}" for number in range(30)]
    engine.spec("fails", script=says(target, "fails", *lines, "boom: assertion failed", ends=3))
    engine.spec("works", script=says(target, "works", "all is well"))
    run = engine.run("reconcile", "--once", str(engine.folder), ends=1)
    table = run.stdout.splitlines()
    row = next(at for at, line in enumerate(table) if line.startswith(f"{engine.namespace}/fails "))
    assert table[row + 1] == "  main | line 11"
    assert table[row + 20] == "  main | boom: assertion failed"
    assert table[row + 21] == "2 jobs: 1 failed, 1 succeeded (2 ran)"
    assert "all is well" not in run.stdout


def test_the_end_of_the_log_is_in_the_json_result_without_its_secrets(
    target: ClusterUnderTest, engine: Engine
) -> None:
    engine.environment["ENGINE_SECRET_TOKEN"] = "hunter2-of-the-test"
    script = says(target, "leaks", "logging in with hunter2-of-the-test", "no such host", ends=1)
    engine.spec("leaks", script=script, secrets={"TOKEN": {"fromEnv": "ENGINE_SECRET_TOKEN"}})
    engine.spec("works", script=says(target, "works", "fine"))
    run = engine.reconcile(ends=1)
    pod = run.job("leaks")["attempts"][0]["pod"]
    assert run.job("leaks")["log"] == {
        "attempt": 1,
        "pod": pod,
        "container": "main",
        "lines": ["logging in with ***", "no such host"],
    }
    assert "log" not in run.job("works")
    again = engine.reconcile(ends=1)
    assert "log" not in again.job("leaks"), "a run that changes nothing asks for no log"


def test_an_init_container_that_failed_is_the_one_whose_log_is_shown(
    target: ClusterUnderTest, engine: Engine
) -> None:
    if isinstance(target, SandboxCluster):
        scene = Run(exit_code=7, log=("no room on the disk",))
        target.sandbox.node.will(scene, pod="never-*", container="prepare")
    script = "echo no room on the disk\nexit 7\n"
    init = [{"name": "prepare", "image": engine.image, "script": script}]
    engine.spec("never", initContainers=init, script="true")
    log = engine.reconcile(ends=1).job("never")["log"]
    assert (log["container"], log["lines"]) == ("prepare", ["no room on the disk"])
    shown = engine.run("logs", f"{engine.namespace}/never", ends=0)
    assert shown.stdout == "no room on the disk\n"


@pytest.mark.only("sandbox")
def test_the_last_words_of_a_job_need_no_right_to_read_logs(
    engine: Engine, sandbox: Sandbox
) -> None:
    sandbox.deny("get", "pods/log")
    sandbox.node.will(Run(exit_code=3, log=("one", "two")), pod="fails-*")
    engine.spec("fails", script="exit 3")
    job = engine.reconcile(ends=1).job("fails")
    assert job["log"]["lines"] == ["one", "two"]
    assert job["message"] == "exit code 3: two"
    assert job["attempts"][0]["lastWords"] == [{"container": "main", "message": "one\ntwo"}]


@pytest.mark.real
def test_last_words_outlive_the_pod_and_hold_no_secret(
    target: ClusterUnderTest, engine: Engine, objects: Objects
) -> None:
    engine.environment["ENGINE_SECRET_TOKEN"] = secret = "hunter2-of-the-test"
    lines = [f"{n} {secret} " + "x" * 40 for n in range(60)]
    script = says(target, "leaks", *lines, "boom: no such host", ends=3)
    engine.spec("leaks", script=script, secrets={"TOKEN": {"fromEnv": "ENGINE_SECRET_TOKEN"}})
    name = f"{engine.namespace}/leaks"
    pod = engine.reconcile(ends=1).job("leaks")["attempts"][0]["pod"]
    objects.api.delete("pods", pod, engine.namespace, grace=0)
    shown = engine.run("describe", name, ends=0).stdout
    assert "main | boom: no such host" in shown
    assert "main | 59 *** xxx" in shown
    record = objects.api.find("configmaps", "leaks.record", engine.namespace)
    assert record is not None
    assert secret[-5:] not in shown + record["data"]["record.json"]
    events = objects.api.list("events", engine.namespace)
    told = [one["message"] for one in events if one["reason"] == "AttemptFailed"]
    assert any("boom: no such host" in words for words in told)
    assert not any(secret in words for words in told)


@pytest.mark.only("sandbox")
def test_what_a_job_says_of_anothers_secret_is_masked_or_not_kept(
    engine: Engine, sandbox: Sandbox, objects: Objects
) -> None:
    data = {"key": base64.b64encode(b"hunter2-of-another").decode()}
    shared = {"metadata": {"name": "shared"}, "data": data}
    objects.api.create("secrets", shared, engine.namespace)
    sandbox.node.will(Run(exit_code=3, log=("with hunter2-of-another",)), pod="fails-*")
    secrets = {"T": {"fromSecret": {"name": "shared", "key": "key"}}}
    engine.spec("fails", script="exit 3", secrets=secrets)
    assert engine.reconcile(ends=1).job("fails")["message"] == "exit code 3: with ***"
    sandbox.deny("get", "secrets")
    engine.spec("fails", script="exit 3", secrets=secrets, rerun="2")
    job = engine.reconcile(ends=1).job("fails")
    assert (job["message"], "log" in job) == ("exit code 3", False)


@pytest.mark.only("sandbox")
def test_what_a_job_says_last_is_not_kept_by_an_engine_that_lacks_its_secret(
    engine: Engine, sandbox: Sandbox, objects: Objects
) -> None:
    """The engine that started the job had it, and this one can't mask it."""
    sandbox.node.will(Run(duration=300, exit_code=3, log=("with hunter2-of-ci",)), pod="fails-*")
    engine.spec("fails", script="exit 3", secrets={"T": {"fromEnv": "ENGINE_SECRET_T"}})
    engine.environment["ENGINE_SECRET_T"] = "hunter2-of-ci"
    engine.reconcile("--wait", "applied", ends=0)
    objects.wait_until_running("fails")
    sandbox.clock.advance(300)
    del engine.environment["ENGINE_SECRET_T"]
    run = engine.reconcile(ends=1)
    record = objects.api.find("configmaps", "fails.record", engine.namespace)
    assert run.job("fails")["message"] == "exit code 3"
    assert "hunter2" not in run.stdout + run.stderr + str(record)


@pytest.mark.only("sandbox")
def test_without_the_feature_the_kubelet_keeps_no_last_words(
    engine: Engine, sandbox: Sandbox
) -> None:
    config = engine.folder.parent / "engine.yaml"
    head = "apiVersion: jobs.engine/v1alpha1\nkind: EngineConfig\n"
    config.write_text(f"{head}features: {{lastWords: false}}\n", encoding="utf-8")
    sandbox.node.will(Run(exit_code=3, log=("one",)), pod="fails-*")
    engine.spec("fails", script="exit 3")
    job = engine.reconcile("--config", str(config), ends=1).job("fails")
    assert (job["message"], "log" in job) == ("exit code 3", False)


def test_logs_prints_what_the_job_wrote_by_the_name_that_is_printed(
    target: ClusterUnderTest, engine: Engine
) -> None:
    engine.spec("job", script=says(target, "job", "one", "two", "three"))
    engine.reconcile(ends=0)
    name = f"{engine.namespace}/job"
    assert engine.run("logs", name, ends=0).stdout == "one\ntwo\nthree\n"
    assert engine.run("logs", "-n", engine.namespace, "job", "--tail", "1").stdout == "three\n"


@pytest.mark.real
def test_logs_follows_a_job_to_its_end(
    target: ClusterUnderTest, engine: Engine, objects: Objects
) -> None:
    engine.spec("long", script=says(target, "long", "begun", lasts=2))
    run = engine.start()
    objects.api.wait(lambda: "long" in engine.status(), "record of the job")
    following = logs(engine, "-f", "long")
    told = finish(following, ends=0)
    assert told.stdout == "begun\n"
    assert "container main" in told.stderr
    assert objects.pod("long")["status"]["phase"] in ("Running", "Succeeded")
    finish(run, ends=0)
    assert engine.status()["long"]["state"] == "Succeeded"


def test_the_attempt_that_is_asked_for_is_shown(target: ClusterUnderTest, engine: Engine) -> None:
    engine.spec("job", script=says(target, "job", "first run"))
    engine.reconcile(ends=0)
    engine.run("rerun", f"{engine.namespace}/job", ends=0)
    if isinstance(target, SandboxCluster):
        scene = Run(log=("second run",))
        target.sandbox.node.will(scene, pod="job-*-2", container="main")
    engine.reconcile(ends=0)
    again = "second run\n" if isinstance(target, SandboxCluster) else "first run\n"
    command = ("logs", "-n", engine.namespace, "job")
    assert engine.run(*command, ends=0).stdout == again
    assert engine.run(*command, "--attempt", "2", ends=0).stdout == again
    assert "there are 1, 2" in engine.run(*command, "--attempt", "7", ends=2).stderr
    assert "one of main" in engine.run(*command, "-c", "web", ends=2).stderr


def test_the_log_of_a_pod_that_is_gone_was_saved_and_its_absence_is_explained(
    target: ClusterUnderTest, engine: Engine, objects: Objects, tmp_path: Path
) -> None:
    saved = tmp_path / "logs"
    engine.spec("old", script=says(target, "old", "long ago"))
    run = engine.reconcile("--logs-dir", str(saved), ends=0)
    pod = run.job("old")["attempts"][-1]["pod"]
    over = {"metadata": {"annotations": {"jobs.engine/expires-at": "2020-01-01T00:00:00Z"}}}
    objects.api.patch("pods", pod, over, engine.namespace)

    def gone() -> bool:
        engine.run("prune", "-n", engine.namespace, ends=0)
        return objects.api.find("pods", pod, engine.namespace) is None

    objects.api.wait(gone, "pruning of the pod")
    command = ("logs", "-n", engine.namespace, "old")
    told = engine.run(*command, ends=1)
    assert f"pod {pod} is gone, and its log with it" in told.stderr
    assert "--logs-dir" in told.stderr
    (file,) = saved.rglob("*.log")
    assert file.read_text() == "long ago\n"


@pytest.mark.only("sandbox")
def test_another_pod_of_that_name_is_not_taken_for_the_jobs(
    engine: Engine, objects: Objects
) -> None:
    engine.spec("job", script="true")
    engine.reconcile(ends=0)
    name = objects.pod("job")["metadata"]["name"]
    objects.api.delete("pods", name, engine.namespace, grace=0)
    objects.api.wait(lambda: not objects.pods(), "end of the pod")
    spec = {"containers": [{"name": "main", "image": engine.image}], "restartPolicy": "Never"}
    objects.api.create("pods", {"metadata": {"name": name}, "spec": spec}, engine.namespace)
    assert "is gone" in engine.run("logs", f"{engine.namespace}/job", ends=1).stderr


@pytest.mark.only("sandbox")
def test_a_job_without_a_pod_is_told_with_what_it_waits_for(
    engine: Engine, sandbox: Sandbox
) -> None:
    engine.spec("waits", script="true")
    sandbox.quota(engine.namespace, pods="0")
    engine.reconcile("--queue-timeout", "1s", ends=5)
    told = engine.run("logs", f"{engine.namespace}/waits", ends=1).stderr
    assert "the job is Queued, and has no pod yet" in told
    assert "exceeded quota" in told
    assert "there is no record" in engine.run("logs", "nobody", ends=2).stderr
