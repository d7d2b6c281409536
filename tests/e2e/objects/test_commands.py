"""The commands on jobs whose specs are JobSpec objects."""

from typing import Any

import pytest

from engine.sandbox import Sandbox
from tests.support.clusters import ClusterUnderTest
from tests.support.engine import CommandResult, Engine
from tests.support.engine_process import EngineProcess
from tests.support.job_specs import JobSpecs, conditions
from tests.support.objects import Objects
from tests.support.status_watch import assert_a_line_for_each_change

DAY = 86_400


def diff(engine: Engine, ends: int) -> str:
    return engine.run("diff", *engine.place, ends=ends).stdout


def plan(engine: Engine, *more: str) -> dict[str, tuple[str, str]]:
    """What each job would do, and why."""
    run = engine.reconcile("--dry-run=client", *more, ends=0)
    return {job["name"]: (job["action"], job["reason"]) for job in run.result["jobs"]}


def _pods(run: CommandResult) -> list[dict[str, Any]]:
    return [one for one in run.result["pruned"] if one["kind"] == "Pod"]


def changes(run: CommandResult) -> set[str]:
    return {job["name"] for job in run.result["jobs"] if job["changed"]}


@pytest.mark.real
def test_logs_prints_and_follows_what_the_job_of_an_object_wrote(
    engine: Engine, specs: JobSpecs, staying: EngineProcess, target: ClusterUnderTest
) -> None:
    engine.spec("build", script=f"echo begun\n{target.script('build', lasts=2)}")
    pod = specs.running_pod("build")
    place = ("-n", engine.namespace, "build")
    told = engine.run("logs", "-f", *place, ends=0)
    assert f"pod {pod['metadata']['name']}" in told.stderr
    assert specs.ended("build")["state"] == "Succeeded"
    assert engine.run("logs", *place, ends=0).stdout == told.stdout


@pytest.mark.only("sandbox")
def test_prune_records_the_outcome_in_the_status_before_it_deletes_the_pod(
    engine: Engine, specs: JobSpecs, sandbox: Sandbox, objects: Objects
) -> None:
    engine.spec("build", script="true")
    engine.reconcile("--wait", "applied", ends=0)
    objects.wait_until_over("build")
    sandbox.clock.advance(DAY)
    prune = ("prune", "-n", engine.namespace, "-o", "json")
    denial = sandbox.deny("update", "jobspecs/status")
    (entry,) = _pods(engine.run(*prune, ends=1))
    assert entry["reason"].startswith("its outcome could not be recorded: ")
    assert specs.pods("build")
    sandbox.allow(denial)
    (entry,) = _pods(engine.run(*prune, ends=0))
    assert entry["action"] == "deleted"
    status = specs.status("build")
    assert (status["state"], status["observedGeneration"]) == ("Succeeded", 1)
    assert not specs.pods("build")
    assert changes(engine.reconcile(ends=0)) == set()


def test_status_prints_a_line_for_each_change_of_an_object(
    engine: Engine, specs: JobSpecs, target: ClusterUnderTest, objects: Objects
) -> None:
    engine.spec("build", script=target.script("build", lasts=3))
    engine.reconcile("--wait", "applied", ends=0)
    assert_a_line_for_each_change(engine, objects, "build", lambda: specs.delete("build"))


def test_describe_tells_the_attempts_of_an_object_and_what_it_waits_for(
    engine: Engine, specs: JobSpecs, staying: EngineProcess, target: ClusterUnderTest
) -> None:
    engine.spec("fails", script=target.script("fails", ends=3))
    engine.spec("never", script="true", suspend=True)
    specs.ended("fails")
    specs.wait_for("never", "Suspended")
    place = ("-n", engine.namespace)
    fails = engine.run("describe", *place, "fails", ends=0).stdout
    (pod,) = specs.pods("fails")
    for words in (
        "State:      Failed ScriptFailed",
        "(JobSpec object)",
        f"1  ScriptFailed, exit code 3: pod {pod['metadata']['name']} on",
        f"until its spec changes or engine rerun {engine.namespace}/fails",
    ):
        assert words in fails
    never = engine.run("describe", *place, "never", ends=0).stdout
    assert "Waits for:  spec.suspend is true" in never


def test_describe_and_status_tell_what_is_wrong_with_an_invalid_object(
    engine: Engine, specs: JobSpecs, staying: EngineProcess, target: ClusterUnderTest
) -> None:
    engine.spec("never", script="true", timout="1h")
    engine.spec("ran", script=target.script("ran"))
    specs.wait_for("ran", "Succeeded")
    specs.patch("ran", podPatch={"spec": {"contaners": []}})
    specs.wait_for("ran", "InvalidSpec")
    specs.ended("never")
    place, wrong = ("-n", engine.namespace), 'InvalidSpec: unknown field "spec.timout" ('
    never = engine.run("describe", *place, "never", ends=2).stdout
    assert "State:      InvalidSpec\n" in never
    assert f"Error:      {engine.namespace}/never: {wrong}" in never
    ran = engine.run("describe", *place, "ran", ends=2).stdout
    assert "State:      InvalidSpec\n" in ran
    assert f"Error:      {engine.namespace}/ran: InvalidSpec: " in ran
    assert ran.count("spec.podPatch") == 1
    assert "1  Succeeded, exit code 0: pod" in ran
    run = engine.run("status", *place, "--failed", ends=0)
    rows = [line.split()[:2] for line in run.stdout.splitlines()[1:]]
    assert rows == [[f"{engine.namespace}/{name}", "InvalidSpec"] for name in ("never", "ran")]
    assert wrong in run.stdout


def test_cancel_and_rerun_of_an_object_hold_whether_an_engine_runs_or_not(
    engine: Engine, specs: JobSpecs, target: ClusterUnderTest
) -> None:
    place = ("build", "-n", engine.namespace)
    engine.spec("build", script=target.script("build", lasts=600))
    engine.reconcile("--wait", "applied", "--source", engine.namespace, ends=0)
    first = specs.running_pod("build")
    engine.run("cancel", *place, "--reason", "enough", ends=0)
    with EngineProcess(engine):
        assert "enough" in specs.wait_for("build", "Cancelled")["message"]
    engine.run("rerun", *place, ends=0)
    assert plan(engine, "--source", engine.namespace) == {"build": ("start", "rerun asked for")}
    with EngineProcess(engine):
        again = specs.running_pod("build")
        assert again["metadata"]["uid"] != first["metadata"]["uid"]
        engine.run("cancel", *place, ends=0)
        specs.wait_for("build", "Cancelled")


def test_diff_names_what_has_changed_of_an_object_and_is_empty_where_nothing_has(
    engine: Engine, specs: JobSpecs
) -> None:
    engine.spec("build", script="true", env={"LEVEL": "debug"})
    assert "build" in diff(engine, ends=1)
    engine.reconcile(ends=0)
    assert diff(engine, ends=0) == ""
    specs.patch("build", env={"LEVEL": "info"})
    assert plan(engine) == {"build": ("start", "spec.env changed")}
    lines = [line.split(maxsplit=1) for line in diff(engine, ends=1).splitlines()]
    assert ["-", "value: debug"] in lines
    assert ["+", "value: info"] in lines


def test_objects_wait_for_each_other_and_a_repair_runs_all_of_it(
    engine: Engine, specs: JobSpecs, staying: EngineProcess, target: ClusterUnderTest
) -> None:
    engine.spec("test", script=target.script("test"), dependsOn=["build"])
    waits = specs.wait_for("test", "Queued")
    assert waits["message"] == f"waits for {engine.namespace}/build"
    assert "Finished" not in {kind for kind, is_so in conditions(waits).items() if is_so == "True"}
    engine.spec("build", script=target.script("build", ends=3))
    failed = specs.ended("test")
    assert (failed["state"], failed["reason"]) == ("Failed", "DependencyFailed")
    assert not specs.pods("test")
    engine.spec("build", script=target.script("build"))
    specs.wait_for("test", "Succeeded")
    build, test = specs.status("build"), specs.status("test")
    assert build["finishedAt"] <= test["startedAt"]
    specs.delete("build")
    specs.wait_until_nothing_is_left("build")
    assert specs.wait_for("test", "Succeeded") == test


def test_a_matrix_is_for_files_and_is_refused_in_an_object(engine: Engine, specs: JobSpecs) -> None:
    with pytest.raises(Exception, match="an object is one: keep it in a file"):
        engine.spec("build", script="true", matrix={"python": ["3.12", "3.13"]})
