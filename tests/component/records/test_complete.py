"""`engine complete`: a job that is recorded as done without running."""

from engine.sandbox import FOREVER, Run, Sandbox
from tests.support.clusters import NAMESPACE
from tests.support.engine import CommandResult, Engine

WHY = ("--reason", "it ran on the old cluster")


def complete(engine: Engine, *arguments: str, ends: int = 0) -> CommandResult:
    return engine.run("complete", *arguments, *WHY, "-n", NAMESPACE, ends=ends)


def test_a_job_without_a_record_is_done_by_its_spec_and_never_runs(
    engine: Engine, sandbox: Sandbox
) -> None:
    for name in ("moved", "new"):
        engine.spec(name, script="true")
    done = complete(engine, "moved", "-f", str(engine.folder))
    assert done.stdout == "ci/moved: recorded as Succeeded; nothing was run\n"
    run = engine.reconcile(ends=0)
    job = run.job("moved")
    assert (job["state"], job["changed"], job["attempts"]) == ("Succeeded", False, [])
    assert job["message"].startswith("completed by ")
    assert job["message"].endswith(": it ran on the old cluster")
    assert engine.status()["moved"]["reason"] == "Succeeded"
    names = {pod["metadata"]["labels"]["jobs.engine/job"] for pod in sandbox.objects("pods")}
    assert names == {"new"}
    assert "is already over: Succeeded" in complete(engine, "moved").stdout
    engine.spec("moved", script="echo changed")
    plan = engine.reconcile("--dry-run", "client", ends=0)
    assert "spec.script changed" in plan.stdout


def test_it_runs_when_its_spec_changes_or_rerun_asks_for_it(engine: Engine) -> None:
    engine.spec("moved", script="true")
    complete(engine, "moved", "-f", str(engine.folder))
    engine.run("rerun", "moved", "-n", NAMESPACE, ends=0)
    (attempt,) = engine.reconcile(ends=0).job("moved")["attempts"]
    assert attempt["number"] == 1
    engine.spec("moved", script="echo changed")
    assert len(engine.reconcile(ends=0).job("moved")["attempts"]) == 1


def test_one_that_failed_or_waits_for_a_quota_is_done_by_its_record(
    engine: Engine, sandbox: Sandbox
) -> None:
    sandbox.node.will(Run(exit_code=1), container="main")
    engine.spec("failed", script="false")
    engine.reconcile(ends=1)
    sandbox.quota(NAMESPACE, pods="0")
    engine.spec("waits", script="true")
    engine.reconcile("--queue-timeout", "1s", ends=5)
    complete(engine, "failed", "waits")
    run = engine.reconcile(ends=0)
    assert {job["state"] for job in run.result["jobs"]} == {"Succeeded"}
    assert [past["state"] for past in engine.status()["failed"]["history"]] == ["Failed"]


def test_what_runs_is_to_be_cancelled_first(engine: Engine, sandbox: Sandbox) -> None:
    sandbox.node.will(Run(duration=FOREVER), container="main")
    engine.spec("long", script="sleep 99")
    engine.reconcile("--wait", "applied", ends=0)
    refused = complete(engine, "long", ends=2)
    assert "engine cancel ci/long first" in refused.stderr
    engine.run("cancel", "long", "-n", NAMESPACE, ends=0)
    complete(engine, "long")
    assert engine.status()["long"]["state"] == "Succeeded"


def test_what_it_cannot_know_is_told_for_each_job(engine: Engine, sandbox: Sandbox) -> None:
    engine.spec("moved", script="true")
    unknown = complete(engine, "typo", ends=2)
    assert "there is no record of this job (name its spec, too: -f FILE)" in unknown.stderr
    folder = str(engine.folder)
    partly = complete(engine, "typo", "moved", "-f", folder, ends=2)
    assert "ci/typo: there is no spec of this job" in partly.stderr
    assert "ci/moved: recorded as Succeeded" in partly.stdout
    other = complete(engine, "moved", "-f", folder, "--source", "other", ends=2)
    assert "belongs to source 'default', not to 'other'" in other.stderr
    silent = engine.run("complete", "moved", "-n", NAMESPACE, ends=2)
    assert "--reason" in silent.stderr
    assert sandbox.objects("pods") == []
