"""What a reconcile would do: `reconcile --dry-run` and `engine diff`, which write nothing."""

import json
from typing import Any

import pytest

from engine.sandbox import Sandbox
from tests.support.clusters import ClusterUnderTest
from tests.support.engine import CommandResult, Engine
from tests.support.objects import Objects

MODES = pytest.mark.parametrize("mode", ["client", "server"])


def plan(engine: Engine, mode: str, *arguments: str, ends: int = 0) -> dict[str, dict[str, Any]]:
    """What is planned, by job."""
    run = engine.run(
        "reconcile", str(engine.folder), f"--dry-run={mode}", "-o", "json", *arguments, ends=ends
    )
    return {job["name"]: job for job in run.result["jobs"]}


def diff(engine: Engine, *arguments: str, ends: int) -> CommandResult:
    return engine.run("diff", str(engine.folder), *arguments, ends=ends)


def told(job: dict[str, Any]) -> tuple[str, str]:
    return job["action"], job["reason"]


@MODES
def test_a_new_job_would_start_for_want_of_a_record_and_nothing_is_written(
    engine: Engine, target: ClusterUnderTest, objects: Objects, mode: str
) -> None:
    engine.spec("job", script="true", secrets={"A": {"value": "hidden-value"}})
    target.forget_requests()
    run = engine.run("reconcile", str(engine.folder), f"--dry-run={mode}", ends=0)
    assert run.stdout.splitlines()[1].split(maxsplit=2) == [
        f"{engine.namespace}/job", "start", "first run",
    ]  # fmt: skip
    assert run.stderr.endswith("1 job: 1 start (dry run: nothing was written)\n")
    assert objects.pods() == []
    assert engine.status() == {}
    if mode == "client":
        assert {*target.requests()} <= {"get", "list"}


def test_a_new_job_is_three_lines_in_a_diff(engine: Engine) -> None:
    engine.spec("job", script="echo hello", secrets={"A": {"value": "hidden-value"}})
    first, second, third = diff(engine, ends=1).stdout.splitlines()
    assert first == f"{engine.namespace}/job: start: first run"
    assert second.startswith("  create pod job-")
    assert third == "  new: Pod, Secret, ConfigMap; -v shows them"
    (planned,) = diff(engine, "-o", "json", ends=1).result["jobs"]
    assert planned["diff"].count("--- /dev/null\n+++ ") == 3


def test_the_manifests_of_a_new_job_are_additions_and_its_secrets_masked(engine: Engine) -> None:
    engine.spec("job", script="echo hello", secrets={"A": {"value": "hidden-value"}})
    said = diff(engine, "-v", ends=1)
    assert said.stdout.startswith(f"{engine.namespace}/job: start: first run\n")
    headers = [line for line in said.stdout.splitlines() if line.startswith(("--- ", "+++ "))]
    assert [line.split("/")[0] for line in headers] == [
        "--- ", "+++ pod", "--- ", "+++ secret", "--- ", "+++ configmap",
    ]  # fmt: skip
    assert '+  A: "***"\n' in said.stdout
    assert "echo hello" in said.stdout
    assert "hidden-value" not in said.stdout
    assert "aGlkZGVu" not in said.stdout


@MODES
def test_a_finished_job_is_left_and_a_diff_of_it_is_empty(engine: Engine, mode: str) -> None:
    engine.spec("job", script="true")
    engine.reconcile(ends=0)
    assert told(plan(engine, mode)["job"]) == ("leave", "Succeeded, spec unchanged")
    assert diff(engine, ends=0).stdout == ""


@MODES
def test_the_field_that_has_changed_is_the_reason_and_the_only_difference(
    engine: Engine, mode: str
) -> None:
    engine.spec("job", script="true", env={"LEVEL": "debug"}, resources={"limits": {"cpu": "1"}})
    engine.reconcile(ends=0)
    engine.spec("job", script="true", env={"LEVEL": "info"}, resources={"limits": {"cpu": "1"}})
    planned = plan(engine, mode)["job"]
    assert told(planned) == ("start", "spec.env changed")
    assert planned["changedFields"] == ["spec.env"]
    said = diff(engine, ends=1).stdout
    changes = [
        line.split(maxsplit=1)
        for line in said.splitlines()
        if line[0] in "+-" and not line.startswith(("--- ", "+++ "))
    ]
    assert changes == [["-", "value: debug"], ["+", "value: info"]]
    assert said.count("--- pod/") == said.count("+++ pod/") == 1


def test_a_field_that_is_no_longer_set_is_a_difference_to_the_server(engine: Engine) -> None:
    engine.spec("job", script="true", securityContext={"runAsUser": 1000})
    engine.reconcile(ends=0)
    engine.spec("job", script="true")
    said = diff(engine, ends=1).stdout
    removed = [line.split(maxsplit=1) for line in said.splitlines() if line.startswith("- ")]
    assert ["-", "runAsUser: 1000"] in removed, said


def test_a_changed_token_is_a_changed_field(engine: Engine) -> None:
    engine.spec("job", script="true", rerun="1")
    engine.reconcile(ends=0)
    engine.spec("job", script="true", rerun="2")
    assert told(plan(engine, "client")["job"]) == (
        "start",
        "rerun asked for",
    )


def test_a_rerun_that_was_asked_for_is_called_so(engine: Engine) -> None:
    engine.spec("job", script="true")
    engine.reconcile(ends=0)
    engine.run("rerun", "-n", engine.namespace, "job", ends=0)
    assert told(plan(engine, "client")["job"]) == (
        "start", "rerun asked for",
    )  # fmt: skip


@MODES
def test_a_running_job_is_left_and_would_be_replaced_once_its_spec_has_changed(
    engine: Engine, target: ClusterUnderTest, objects: Objects, mode: str
) -> None:
    script = target.script("job", lasts=300)
    engine.spec("job", script=script)
    engine.reconcile("--wait", "applied", ends=0)
    pod = objects.wait_until_running("job")["metadata"]
    planned = plan(engine, mode)["job"]
    assert planned["action"] in ("leave", "continue")
    engine.spec("job", script=script, env={"A": "b"})
    planned = plan(engine, mode)["job"]
    assert told(planned) == ("replace", "spec.env changed")
    assert planned["next"].startswith("record attempt 1: Superseded: run ")
    assert planned["next"].endswith(" replaced it: spec.env changed")
    if mode == "server":
        assert "+++ pod/" in planned["diff"]
        assert "+          value: b" in planned["diff"]
    assert objects.pod("job")["metadata"]["uid"] == pod["uid"]
    engine.spec("job", script=script, env={"A": "b"}, onChange="Wait")
    action, reason = told(plan(engine, mode)["job"])
    assert action == "leave"
    assert reason.startswith(f"pod {pod['name']} ends first (onChange: Wait): ")


def test_what_would_be_pruned_is_said_and_stays(
    engine: Engine, objects: Objects, target: ClusterUnderTest
) -> None:
    source = ("--source", f"source-{objects.namespace[-8:]}")
    engine.spec("gone", script="true")
    engine.spec("stays", script="true")
    engine.reconcile(*source, ends=0)
    (engine.folder / "gone.yaml").unlink()
    said = diff(engine, *source, "-o", "json", ends=1)
    assert (said.result["pruned"], said.result["marked"]) == ([], 1)
    for command in (("diff", "-o", "json"), ("reconcile", "--dry-run=server", "-o", "json")):
        run = engine.run(*command, str(engine.folder), "--prune", *source)
        assert run.code == (1 if command[0] == "diff" else 0)
        entries = {(e["kind"], e["name"].split("-")[0]): e["action"] for e in run.result["pruned"]}
        assert entries == {
            ("Pod", "gone"): "would-delete",
            ("ConfigMap", "gone.record"): "would-delete",
        }
    assert len(objects.pods()) == 2
    assert {*engine.status()} == {"gone", "stays"}


def test_another_sources_job_fails_the_plan(engine: Engine) -> None:
    engine.spec("job", script="true")
    engine.reconcile("--source", "theirs", ends=0)
    planned = plan(engine, "client", "--source", "ours", ends=5)["job"]
    assert planned["action"] == "fail"
    assert "belongs to source 'theirs'" in planned["reason"]
    assert diff(engine, "--source", "ours", ends=2).stdout.startswith(
        f"{engine.namespace}/job: fail"
    )


def test_a_quota_is_part_of_what_the_server_says(engine: Engine, limit: Any) -> None:
    limit({"pods": "0"})
    engine.spec("job", script="true")
    assert told(plan(engine, "client")["job"]) == ("start", "first run")
    action, reason = told(plan(engine, "server")["job"])
    assert (action, reason.split(":")[0]) == ("start", "queued")
    assert "exceeded quota" in reason


@pytest.mark.only("sandbox")
def test_a_spec_of_an_older_record_has_changed_nobody_knows_where(
    engine: Engine, sandbox: Sandbox
) -> None:
    engine.spec("job", script="true")
    engine.reconcile(ends=0)
    record = sandbox.get("configmaps", engine.namespace, "job.record")
    assert record is not None
    content = json.loads(record["data"]["record.json"])
    del content["specFields"]
    record["data"]["record.json"] = json.dumps(content)
    sandbox.restore(record)
    assert told(plan(engine, "client")["job"])[0] == "leave"
    engine.spec("job", script="false")
    assert told(plan(engine, "client")["job"]) == (
        "start", "spec changed",
    )  # fmt: skip


@pytest.mark.only("sandbox")
def test_many_finished_jobs_cost_a_plan_no_request_each(engine: Engine, sandbox: Sandbox) -> None:
    for number in range(20):
        engine.spec(f"job-{number}", script="true")
    engine.reconcile(ends=0)
    sandbox.requests.clear()
    assert diff(engine, ends=0).stdout == ""
    assert sandbox.requests.counts == {
        ("get", ""): 1, ("list", "pods"): 2, ("list", "configmaps"): 1,
    }  # fmt: skip


def test_an_invalid_spec_and_a_cluster_that_is_away_are_2_to_a_diff(engine: Engine) -> None:
    engine.write("job.yaml", "kind: JobSpec\napiVersion: jobs.engine/v1alpha1\n")
    assert diff(engine, ends=2).stdout == ""
    engine.run("reconcile", str(engine.folder), "--dry-run=client", ends=2)
    engine.spec("job", script="true")
    (engine.folder.parent / "none").write_text("apiVersion: v1\nkind: Config\n")
    away = ("--kubeconfig", str(engine.folder.parent / "none"))
    assert diff(engine, *away, ends=2).stderr.startswith("error: ")
    engine.run("reconcile", str(engine.folder), "--dry-run=client", *away, ends=6)


def test_options_of_an_engine_that_stays_are_refused_in_a_dry_run(engine: Engine) -> None:
    engine.spec("job", script="true")
    where = (str(engine.folder), "--dry-run=client", "--leader-elect")
    assert "no effect" in engine.run("reconcile", *where, ends=2).stderr
