"""Which jobs are a source's own: what --prune may take, and how a job moves to another source."""

import os
import pty
import subprocess
import sys

import pytest

from engine.sandbox import Fault, Sandbox
from engine.sandbox.faults import Conflict, Latency, ServerError
from tests.e2e.conftest import Quota
from tests.support.clusters import ClusterUnderTest
from tests.support.engine import CommandResult, Engine, finish
from tests.support.engine_process import EngineProcess
from tests.support.objects import Objects

MANY = 12


def given_jobs(engine: Engine, count: int = MANY, source: str = "") -> list[str]:
    """Jobs of the source that are over; no pod of theirs was ever made."""
    names = [engine.spec(f"job-{number:02}", script="true") for number in range(count)]
    folder, place = str(engine.folder), source or engine.namespace
    done = ("--reason", "given", "--source", place, "-n", engine.namespace)
    engine.run("complete", *names, "-f", folder, *done, ends=0)
    return names


def remove_specs(engine: Engine, names: list[str]) -> None:
    for name in names:
        (engine.folder / f"{name}.yaml").unlink()


def prune(engine: Engine, *arguments: str, ends: int) -> CommandResult:
    return engine.reconcile("--prune", "--source", engine.namespace, *arguments, ends=ends)


def on_a_terminal(engine: Engine, answer: str, *arguments: str) -> CommandResult:
    """`reconcile --once --prune` where a person can be asked, and answers so."""
    ours, theirs = pty.openpty()
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", "engine", "reconcile", "--once", str(engine.folder), "--prune",
             "--source", engine.namespace, *arguments],
            stdin=theirs, stderr=theirs, stdout=subprocess.PIPE, text=True,
            env={**engine.environment_of_process(), "TERM": "dumb"},
        )  # fmt: skip
        os.close(theirs)
        os.write(ours, f"{answer}\n".encode())
        said = ""
        try:
            while piece := os.read(ours, 4096):
                said += piece.decode()
        except OSError:  # the other side is closed
            pass
        stdout, _ = process.communicate(timeout=120)
        return CommandResult(process.returncode, stdout, said)
    finally:
        os.close(ours)


@pytest.mark.parametrize("path", ["job-00.yaml", "-"])
def test_prune_of_a_single_file_or_stdin_never_removes_the_other_jobs_of_its_source(
    engine: Engine, path: str
) -> None:
    names = given_jobs(engine, 4)
    named = path if path == "-" else str(engine.folder / path)
    for command in (("reconcile", "--once"), ("reconcile", "--dry-run=client"), ("diff",)):
        said = engine.run(*command, "--source", engine.namespace, "--prune", named, ends=2)
        assert f"{named}: --prune needs whole folders" in said.stderr
    assert sorted(engine.status()) == names


def test_a_pipeline_never_removes_more_than_half_of_a_source_unless_that_was_said(
    engine: Engine, objects: Objects
) -> None:
    names = given_jobs(engine)
    remove_specs(engine, names[1:])
    engine.spec("new", script="true")
    assert "--yes needs --prune" in engine.reconcile("--yes", ends=2).stderr
    for arguments in ((), ("--dry-run", "client"), ("--max-removals", "10", "--yes")):
        said = prune(engine, *arguments, ends=2)
        assert f"--prune would remove 11 of the 12 jobs of source {engine.namespace}, " in (
            said.stderr
        )
        assert sorted(engine.status()) == names
        assert objects.pods() == []
    prune(engine, "--max-removals", "11", ends=0)
    assert sorted(engine.status()) == ["job-00", "new"]


def test_half_of_a_source_goes_without_a_question_and_all_of_it_if_that_was_said(
    engine: Engine,
) -> None:
    names = given_jobs(engine, 24)
    remove_specs(engine, names[12:])
    prune(engine, ends=0)
    assert sorted(engine.status()) == names[:12]
    remove_specs(engine, names[:12])
    prune(engine, "--allow-empty", "-n", engine.namespace, ends=2)
    assert sorted(engine.status()) == names[:12]
    prune(engine, "--allow-empty", "-n", engine.namespace, "--yes", ends=0)
    assert engine.status() == {}


def test_on_a_terminal_nothing_is_removed_before_a_person_has_said_yes(engine: Engine) -> None:
    names = given_jobs(engine, 3)
    remove_specs(engine, names[1:])
    place = engine.namespace
    said = on_a_terminal(engine, "n")
    assert (said.code, sorted(engine.status())) == (2, names), said.stderr
    question = f"--prune removes 2 of the 3 jobs of source {place}: {place}/job-01, {place}/job-02"
    assert f"{question}. Go on? [y/N]:" in said.stderr
    assert "nothing was removed, and nothing was started" in said.stderr
    said = on_a_terminal(engine, "y")
    assert (said.code, sorted(engine.status())) == (0, ["job-00"]), said.stderr
    assert "Go on?" not in on_a_terminal(engine, "n").stderr
    remove_specs(engine, names[:1])
    said = on_a_terminal(engine, "n", "--yes", "--allow-empty")
    assert (said.code, engine.status()) == (0, {}), said.stderr


def test_an_engine_that_stays_never_removes_more_than_half_unless_that_was_said_and_goes_on(
    engine: Engine, objects: Objects
) -> None:
    names = given_jobs(engine)
    with EngineProcess(engine, "--prune", "--prune-interval", "1s") as staying:
        remove_specs(engine, names[1:])
        staying.wait_for_line("--prune would remove 11 of the 12 jobs")
        engine.spec("new", script="true")
        staying.wait_for_line("/new: Succeeded")
        assert sorted(engine.status()) == [*names, "new"]
        assert staying.text.count("--prune would remove") == 1
        for name in names[1:6]:
            engine.spec(name, script="true")
        objects.api.wait(
            lambda: sorted(engine.status()) == [*names[:6], "new"], "removal of the rest"
        )
    with EngineProcess(engine, "--prune", "--yes", "--allow-empty") as staying:
        remove_specs(engine, [*names[:6], "new"])
        objects.api.wait(lambda: engine.status() == {}, "removal of all")


def adopt(engine: Engine, *arguments: str, ends: int = 0) -> CommandResult:
    return engine.run("adopt", "--source", "web", str(engine.folder), *arguments, ends=ends)


def sources(objects: Objects) -> set[str]:
    """Of all pods and records, by their labels."""
    api, place = objects.api, objects.namespace
    records = api.list("configmaps", place, labels="jobs.engine/component=record")
    pods = api.list("pods", place)
    return {one["metadata"]["labels"]["jobs.engine/source"] for one in (*records, *pods)}


def test_a_job_never_has_to_stay_with_the_source_that_it_began_in(
    engine: Engine, objects: Objects, target: ClusterUnderTest
) -> None:
    engine.spec("over", script=target.script("over"), files={"a": "b"})
    engine.spec("runs", script=target.script("runs", lasts=60))
    engine.reconcile("--source", "old", "--wait", "applied", ends=0)
    objects.wait_until_running("runs")
    objects.wait_until_over("over")
    engine.reconcile("--source", "old", "--timeout", "1s")
    place, before = engine.namespace, pods_by_uid(objects)
    refused = engine.reconcile("--source", "web", ends=5)
    assert "engine adopt moves it to another one" in refused.stderr
    said = adopt(engine, "--dry-run")
    assert said.stdout.splitlines() == [
        f"{place}/over: moved from source old; 1 pod relabelled (dry run)",
        f"{place}/runs: moved from source old; 1 pod relabelled (dry run)",
    ]
    assert sources(objects) == {"old"}
    said = adopt(engine)
    assert said.stdout.splitlines() == [
        f"{place}/over: moved from source old; 1 pod relabelled",
        f"{place}/runs: moved from source old; 1 pod relabelled",
    ]
    assert sources(objects) == {"web"}
    run = engine.reconcile("--source", "web", ends=0)
    assert run.job("over")["changed"] is False
    assert [job["state"] for job in run.result["jobs"]] == ["Succeeded", "Succeeded"]
    assert pods_by_uid(objects) == before
    again = adopt(engine).stdout.splitlines()
    assert again == [f"{place}/{name}: belongs to source web already" for name in ("over", "runs")]
    assert engine.reconcile("--source", "old", ends=5).job("over")["changed"] is False


def pods_by_uid(objects: Objects) -> dict[str, str]:
    return {pod["metadata"]["uid"]: pod["metadata"]["name"] for pod in objects.pods()}


def test_a_job_that_is_not_there_is_not_adopted_and_the_others_are(engine: Engine) -> None:
    engine.spec("over", script="true")
    engine.reconcile("--source", "old", ends=0)
    engine.spec("new", script="true")
    said = adopt(engine, ends=2)
    assert said.stdout == f"{engine.namespace}/over: moved from source old; 1 pod relabelled\n"
    assert f"{engine.namespace}/new: there is no record of this job" in said.stderr
    engine.environment.pop("ENGINE_SOURCE", "")
    assert "missing option '--source'" in engine.run("adopt", "jobs", ends=2).stderr


@pytest.mark.only("sandbox")
@pytest.mark.parametrize("step", [("update", "configmaps"), ("list", "pods"), ("patch", "pods")])
def test_whatever_step_an_adoption_ends_at_the_job_has_one_owner_and_the_next_call_finishes_it(
    engine: Engine, sandbox: Sandbox, objects: Objects, step: tuple[str, str]
) -> None:
    engine.spec("over", script="true")
    engine.reconcile("--source", "old", ends=0)
    verb, resource = step
    fault = sandbox.faults.add(Fault(ServerError(500), verb=verb, resource=resource, times=None))
    adopt(engine, ends=6)
    sandbox.faults.remove(fault)
    before = pods_by_uid(objects)
    owner, other = ("old", "web") if verb == "update" else ("web", "old")
    assert engine.reconcile("--source", owner, ends=0).job("over")["changed"] is False
    engine.reconcile("--source", other, ends=5)
    adopt(engine)
    assert (sources(objects), pods_by_uid(objects)) == ({"web"}, before)
    assert engine.reconcile("--source", "web", ends=0).job("over")["changed"] is False


@pytest.mark.only("sandbox")
def test_another_pod_that_has_taken_the_name_meanwhile_is_not_relabelled(
    engine: Engine, sandbox: Sandbox, objects: Objects
) -> None:
    engine.spec("over", script="true")
    engine.reconcile("--source", "old", ends=0)
    pod = objects.pod("over")
    slow = sandbox.faults.add(Fault(Latency(3.0), verb="patch", resource="pods"))
    process = engine.begin("adopt", "--source", "web", str(engine.folder))
    objects.api.wait(lambda: sandbox.faults.hits(slow), "the patch of the pod")
    objects.api.delete("pods", pod["metadata"]["name"], objects.namespace, grace=0)
    kept = {name: pod["metadata"][name] for name in ("name", "namespace", "labels")}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": kept, "spec": pod["spec"]}
    objects.api.create("pods", body, objects.namespace)
    finish(process)
    (stranger,) = objects.pods()
    assert stranger["metadata"]["uid"] != pod["metadata"]["uid"]
    assert stranger["metadata"]["labels"]["jobs.engine/source"] == "old"


@pytest.mark.only("sandbox")
def test_a_record_that_changes_while_it_is_adopted_is_read_again(
    engine: Engine, sandbox: Sandbox, objects: Objects
) -> None:
    engine.spec("over", script="true")
    engine.reconcile("--source", "old", ends=0)
    sandbox.faults.add(Fault(Conflict(), verb="update", resource="configmaps", times=2))
    adopt(engine)
    assert sources(objects) == {"web"}


def test_cancel_all_never_crosses_into_another_source_unsaid(engine: Engine, limit: Quota) -> None:
    limit({"pods": "0"})
    engine.environment.pop("ENGINE_SOURCE", "")
    for source in ("one", "two"):
        engine.spec(source, script="true")
        folder = str(engine.folder)
        engine.run("reconcile", "--once", folder, "--source", source, "--queue-timeout", "1s",
                   ends=5)  # fmt: skip
        (engine.folder / f"{source}.yaml").unlink()
    where, place = ("-n", engine.namespace), engine.namespace
    refused = engine.run("cancel", "--all", *where, ends=2)
    assert "--all needs --source or -l" in refused.stderr
    planned = engine.run("cancel", "--all", "--source", "two", *where, "--dry-run", ends=0)
    assert planned.stdout == f"{place}/two: would be cancelled, it has no pod (dry run)\n"
    assert "1 job of source two (1)" in planned.stderr
    done = engine.run("cancel", "--all", "--source", "two", *where, ends=0)
    assert done.stdout == f"{place}/two: cancelled; it had no pod\n"
    assert engine.status()["one"]["state"] == "Queued"
    labels = ("-l", "jobs.engine/component=record")
    assert "1 job of source one (1)" in engine.run("cancel", *labels, *where, ends=0).stderr


def test_a_renamed_job_never_runs_again_without_a_word(engine: Engine) -> None:
    place, own = engine.namespace, ("--source", engine.namespace)
    (first,) = given_jobs(engine, 1)
    engine.spec("other", script="echo other")
    engine.reconcile(*own, ends=0)
    remove_specs(engine, [first])
    engine.spec("renamed", script="true", ttl="2d")
    words = f"note: {place}/renamed looks like a rename of {place}/job-00: it runs as a new job"
    assert words in engine.run("diff", str(engine.folder), *own, ends=1).lines
    assert words in engine.reconcile(*own, ends=0).lines
    assert words not in engine.reconcile(*own, ends=0).stderr
    with EngineProcess(engine) as staying:
        staying.wait_for_line(f"{place}/other: Succeeded, unchanged")
        text = (engine.folder / "other.yaml").read_text()
        engine.write("other.yaml", text.replace('"other"', '"another"'))
        staying.wait_for_line(f"{place}/another looks like a rename of {place}/other: it runs")


@pytest.mark.parametrize("how", ["the shared source", "a file", "another source"])
def test_no_other_reconcile_lets_a_record_age_silently(
    engine: Engine, objects: Objects, how: str
) -> None:
    source = "default" if how == "the shared source" else engine.namespace
    (name,) = given_jobs(engine, 1, source)
    engine.spec("other", script="true")
    remove_specs(engine, [name])
    path = str(engine.folder / "other.yaml") if how == "a file" else str(engine.folder)
    given = f"{source}-2" if how == "another source" else source
    engine.run("reconcile", "--once", path, "--source", given, ends=0)
    assert marked(objects, name) is False
    if how == "a file":
        said = engine.reconcile("--source", source, ends=0)
        assert said.lines[-1] == (
            f"note: source {source}: 1 job has no spec any more; its record is kept for 30d"
        )
        assert marked(objects, name) is True
        engine.spec(name, script="true")
        said = engine.reconcile("--source", source, ends=0)
        assert f"{engine.namespace}/{name}: its spec is back; its record ages no more" in said.lines
        assert (marked(objects, name), said.job(name)["changed"]) == (False, False)


def marked(objects: Objects, job: str) -> bool:
    record = objects.api.find("configmaps", f"{job}.record", objects.namespace)
    assert record is not None
    return "jobs.engine/orphaned-since" in record["metadata"].get("annotations", {})


def test_a_job_that_runs_goes_on_under_its_new_source_while_an_engine_follows_the_old_one(
    engine: Engine, objects: Objects, target: ClusterUnderTest
) -> None:
    engine.spec("runs", script=target.script("runs", lasts=60))
    with EngineProcess(engine, "--prune", "--prune-interval", "1s") as staying:
        objects.wait_until_running("runs")
        before = pods_by_uid(objects)
        adopt(engine)
        run = engine.reconcile("--source", "web", ends=0)
        assert (run.job("runs")["state"], len(run.job("runs")["attempts"])) == ("Succeeded", 1)
        engine.spec("runs", script="another thing")
        staying.wait_for_line("belongs to source 'web'")
        (engine.folder / "runs.yaml").unlink()
        engine.spec("other", script="true")
        staying.wait_for_line("/other: Succeeded")
    assert pods_by_uid(objects).items() >= before.items()
    assert engine.status()["runs"]["state"] == "Succeeded"
