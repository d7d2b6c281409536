"""A pipeline that can be finished: what is told, saved and left behind, however it ends."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from ruamel.yaml import YAML

from engine.files import resource_dir
from engine.sandbox import Fault, Latency, Run, Sandbox
from tests.e2e.test_logs import says
from tests.support.client import eventually
from tests.support.clusters import ClusterUnderTest, SandboxCluster
from tests.support.engine import CommandResult, Engine, finish
from tests.support.engine_process import EngineProcess, wait_for_state
from tests.support.objects import Objects

SECRET = "hunter2-of-the-pipeline"


def saved(folder: Path) -> dict[str, str]:
    """What was saved, by `pod/container.log`."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {f"{path.parent.name}/{path.name}": path.read_text() for path in files}


@pytest.mark.real
def test_no_log_of_a_job_that_has_ended_is_missing_from_the_artifacts(
    target: ClusterUnderTest, engine: Engine, tmp_path: Path
) -> None:
    lines = [f"line {number}" for number in range(100)]
    engine.environment["ENGINE_SECRET_TOKEN"] = SECRET
    engine.spec(
        "fails",
        script=says(target, "fails", *lines, f"login with {SECRET} refused", ends=3),
        secrets={"TOKEN": {"fromEnv": "ENGINE_SECRET_TOKEN"}},
    )
    engine.spec("works", script=says(target, "works", "all is well"))
    folder = tmp_path / "logs"
    run = engine.reconcile("--logs-dir", str(folder), ends=1)
    pods = {name: run.job(name)["attempts"][0]["pod"] for name in ("fails", "works")}
    masked = "".join(f"{line}\n" for line in [*lines, "login with *** refused"])
    assert saved(folder) == {
        f"{pods['fails']}/main.log": masked,
        f"{pods['works']}/main.log": "all is well\n",
    }
    assert {path.name for path in folder.iterdir()} == {engine.namespace}


def test_a_log_that_can_not_be_saved_is_a_warning_and_changes_no_outcome(
    target: ClusterUnderTest, engine: Engine, tmp_path: Path
) -> None:
    engine.spec("works", script=says(target, "works", "all is well"))
    (tmp_path / "logs").write_text("a file is in the way")
    (tmp_path / "logs").chmod(0o600)
    told = engine.reconcile("--logs-dir", str(tmp_path / "logs" / "below"), ends=0)
    assert told.job("works")["state"] == "Succeeded"
    (warning,) = [line for line in told.lines if "could not be saved" in line]
    assert warning.startswith(f"{engine.namespace}/works: the log of pod works-")
    assert "Not a directory" in warning


@pytest.mark.only("sandbox")
def test_a_node_that_gives_no_log_is_told_and_the_outcome_stays(
    engine: Engine, sandbox: Sandbox, tmp_path: Path
) -> None:
    sandbox.deny("get", "pods/log")
    sandbox.node.will(Run(log=("unheard",)), pod="works-*")
    engine.spec("works", script="true")
    told = engine.reconcile("--logs-dir", str(tmp_path / "logs"), ends=0)
    assert "could not be saved: main: " in told.stderr
    assert saved(tmp_path / "logs") == {}


def test_an_engine_that_stays_prints_the_last_words_of_what_failed_and_saves_them(
    target: ClusterUnderTest, engine: Engine, objects: Objects, tmp_path: Path
) -> None:
    engine.spec("fails", script=says(target, "fails", "begun", "boom: no room", ends=3))
    with EngineProcess(engine, "--logs-dir", str(tmp_path / "logs")) as running:
        running.wait_for_line(f"{engine.namespace}/fails: Failed ScriptFailed")
        running.wait_for_line(f"{engine.namespace}/fails | begun")
        running.wait_for_line(f"{engine.namespace}/fails | boom: no room")
        objects.api.wait(lambda: saved(tmp_path / "logs"), "saved log")
    (text,) = saved(tmp_path / "logs").values()
    assert text == "begun\nboom: no room\n"


@pytest.mark.only("sandbox")
def test_an_engine_that_stays_needs_no_right_to_logs_for_the_last_lines(
    engine: Engine, sandbox: Sandbox
) -> None:
    sandbox.deny("get", "pods/log")
    sandbox.node.will(Run(exit_code=3, log=("boom",)), pod="fails-*")
    engine.spec("fails", script="exit 3")
    with EngineProcess(engine) as running:
        running.wait_for_line(f"{engine.namespace}/fails | boom")
    asked = [one for one in sandbox.requests.where() if one.resource == "pods/log"]
    assert asked == []


PIPELINE = ("--rerun-failed", "--cancel-on-exit")


def pods_of(objects: Objects, job: str) -> list[str]:
    """Names of the pods of a job."""
    pods = [pod["metadata"] for pod in objects.pods()]
    mine = (pod["name"] for pod in pods if pod["labels"]["jobs.engine/job"] == job)
    return sorted(mine)


def wait_until_gone(objects: Objects, job: str) -> None:
    objects.api.wait(lambda: not pods_of(objects, job), f"end of the pod of {job}")


def endless(target: ClusterUnderTest, job: str) -> str:
    """The script of a job that says that it has begun, and ends when it is told to."""
    if isinstance(target, SandboxCluster):
        return says(target, job, "begun", lasts=600)
    return f"echo begun\n{target.script(job, lasts=600)}"


def test_an_old_failure_is_not_told_as_if_it_were_of_this_pipeline(
    target: ClusterUnderTest, engine: Engine, objects: Objects, tmp_path: Path
) -> None:
    engine.spec("fails", script=says(target, "fails", "boom", ends=3))
    engine.spec("works", script=says(target, "works", "fine"))
    key = f"{engine.namespace}/fails"
    first = engine.run("reconcile", "--once", str(engine.folder), ends=1)
    assert first.stdout.splitlines()[-1] == "2 jobs: 1 failed, 1 succeeded (2 ran)"
    assert "was left" not in first.stdout
    before = pods_of(objects, "fails")
    report = tmp_path / "engine.xml"
    again = engine.run("reconcile", "--once", str(engine.folder), "--junit", str(report), ends=1)
    *_, row, left, summary = again.stdout.splitlines()
    assert row.startswith(f"{key} ")
    assert left.startswith(f"  {key} failed ")
    assert " ago (exit code 3) and was left: " in left
    assert left.endswith(f"engine rerun {key} (its log: engine logs {key})")
    assert summary == "2 jobs: 1 failed, 1 succeeded; nothing changed"
    assert pods_of(objects, "fails") == before
    (failure,) = ET.parse(report).getroot().iter("failure")
    assert left.strip() in (failure.text or "")
    assert engine.reconcile(ends=1).job("fails")["changed"] is False


def test_a_failure_that_was_mended_outside_the_spec_makes_no_later_pipeline_red(
    target: ClusterUnderTest, engine: Engine, objects: Objects
) -> None:
    engine.spec("works", script=says(target, "works", "fine"))
    if isinstance(target, SandboxCluster):
        target.sandbox.node.will(Run(exit_code=3, log=("no such table",)), pod="fails-*-1")
    secret = {"metadata": {"name": "database"}, "stringData": {"ends": "3"}}
    objects.api.create("secrets", secret, engine.namespace)
    source = {"fromSecret": {"name": "database", "key": "ends"}}
    engine.spec("fails", script="echo begun; exit $ENDS", secrets={"ENDS": source})
    engine.reconcile(*PIPELINE, ends=1)
    assert engine.reconcile(ends=1).job("fails")["changed"] is False
    mended = {"stringData": {"ends": "0"}}
    objects.api.patch("secrets", "database", mended, engine.namespace)
    told = engine.run("reconcile", "--once", str(engine.folder), *PIPELINE, ends=0)
    (cause,) = [line for line in told.lines if "--rerun-failed" in line]
    assert cause.startswith(f"{engine.namespace}/fails: failed ")
    assert "(exit code 3); runs again" in cause
    assert told.stdout.splitlines()[-1] == "2 jobs: 2 succeeded (1 ran)"
    assert [name[-2:] for name in pods_of(objects, "fails")] == ["-1", "-2"]
    assert len(pods_of(objects, "works")) == 1
    last = engine.run("reconcile", "--once", str(engine.folder), *PIPELINE, ends=0)
    assert last.stdout.splitlines()[-1] == "2 jobs: 2 succeeded; nothing changed"


def test_what_fails_in_a_pipeline_is_not_run_again_by_the_same_one(
    target: ClusterUnderTest, engine: Engine, objects: Objects
) -> None:
    engine.spec("fails", script=target.script("fails", ends=3))
    engine.reconcile(*PIPELINE, ends=1)
    assert len(pods_of(objects, "fails")) == 1
    again = engine.reconcile(*PIPELINE, ends=1)
    assert again.job("fails")["changed"] is True
    assert len(pods_of(objects, "fails")) == 2


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_no_job_of_a_cancelled_pipeline_goes_on(
    target: ClusterUnderTest, engine: Engine, objects: Objects, tmp_path: Path, number: int,
    code: int,
) -> None:  # fmt: skip
    engine.spec("done", script=says(target, "done", "fine"))
    engine.spec("long", script=endless(target, "long"))
    logs = tmp_path / "logs"
    process = engine.begin(
        "reconcile", "--once", str(engine.folder), *PIPELINE, "--logs-dir", str(logs)
    )
    wait_for_state(engine, "done", "Succeeded")
    wait_for_state(engine, "long", "Running")
    (pod,) = pods_of(objects, "long")
    process.send_signal(number)
    told = finish(process, ends=code)
    assert f"{engine.namespace}/long: cancelled; pod {pod} deleted" in told.lines
    assert told.lines[-1] == "interrupted: 1 job cancelled"
    assert told.stdout.splitlines()[-1] == "2 jobs: 1 cancelled, 1 succeeded (2 ran)"
    wait_until_gone(objects, "long")
    status = engine.status()
    assert status["done"]["state"] == "Succeeded"
    assert status["long"]["state"] == "Cancelled"
    assert "--cancel-on-exit" in status["long"]["message"]
    assert saved(logs)[f"{pod}/main.log"] == "begun\n"
    engine.spec("long", script=says(target, "long", "begun", lasts=0))
    engine.reconcile(*PIPELINE, ends=0)


def test_a_pipeline_that_is_cancelled_spares_what_another_one_has_started(
    target: ClusterUnderTest, engine: Engine, objects: Objects
) -> None:
    engine.spec("theirs", script=target.script("theirs", lasts=600))
    engine.reconcile("--wait=applied", ends=0)
    engine.spec("ours", script=target.script("ours", lasts=600))
    process = engine.start(*PIPELINE)
    wait_for_state(engine, "ours", "Running")
    process.send_signal(signal.SIGTERM)
    told = finish(process, ends=143)
    assert told.lines[-1].startswith("interrupted: 1 job cancelled, 1 job is not over; ")
    wait_until_gone(objects, "ours")
    assert engine.status()["theirs"]["observed"]["state"] == "Running"
    assert len(pods_of(objects, "theirs")) == 1


def test_a_cancelled_pipeline_without_the_option_leaves_its_jobs_to_the_next_one(
    target: ClusterUnderTest, engine: Engine, objects: Objects
) -> None:
    engine.spec("long", script=target.script("long", lasts=600))
    process = engine.start()
    wait_for_state(engine, "long", "Running")
    process.send_signal(signal.SIGTERM)
    told = finish(process, ends=143)
    assert "1 job is not over; what has started goes on" in told.lines[-1]
    assert engine.status()["long"]["state"] == "Running"
    assert len(pods_of(objects, "long")) == 1


@pytest.mark.only("sandbox")
def test_what_can_not_be_cancelled_is_told_by_name(engine: Engine, sandbox: Sandbox) -> None:
    sandbox.node.will(Run(duration=600), pod="long-*")
    engine.spec("long", script="sleep 600")
    process = engine.start(*PIPELINE)
    wait_for_state(engine, "long", "Running")
    sandbox.deny("update", "configmaps")
    process.send_signal(signal.SIGTERM)
    told = finish(process, ends=143)
    assert f"{engine.namespace}/long: could not be cancelled, and goes on: " in told.stderr
    assert "1 job is not over" in told.lines[-1]


@pytest.mark.only("sandbox")
def test_a_second_signal_ends_a_pipeline_at_once(engine: Engine, sandbox: Sandbox) -> None:
    sandbox.node.will(Run(duration=600), pod="long-*")
    engine.spec("long", script="sleep 600")
    process = engine.start(*PIPELINE)
    wait_for_state(engine, "long", "Running")
    silent = sandbox.faults.add(Fault(Latency(12), verb="get", resource="configmaps"))
    process.send_signal(signal.SIGINT)
    eventually(lambda: sandbox.faults.hits(silent))
    process.send_signal(signal.SIGINT)
    told = finish(process, ends=130)
    assert told.stdout == ""
    assert engine.status()["long"]["state"] == "Running"


@pytest.mark.only("sandbox")
def test_a_rerun_that_had_not_begun_when_the_pipeline_was_cancelled_is_a_failure_still(
    engine: Engine, sandbox: Sandbox
) -> None:
    sandbox.node.will(Run(exit_code=3), pod="fails-*")
    engine.spec("fails", script="exit 3")
    engine.reconcile(ends=1)
    sandbox.quota(engine.namespace, pods="0")
    process = engine.start(*PIPELINE)
    wait_for_state(engine, "fails", "Queued")
    process.send_signal(signal.SIGTERM)
    told = finish(process, ends=143)
    assert "its rerun, which had not begun, is cancelled" in told.stderr
    assert engine.status()["fails"]["state"] == "Failed"


@pytest.mark.only("sandbox")
def test_a_result_of_many_jobs_ends_with_what_failed_and_counts_the_rest(
    engine: Engine, sandbox: Sandbox
) -> None:
    sandbox.node.will(Run(exit_code=3), pod="a-fails-*")
    engine.spec("a-fails", script="exit 3")
    for number in range(25):
        engine.spec(f"works-{number:02}", script="true")
    told = engine.run("reconcile", "--once", str(engine.folder), ends=1)
    rows = told.stdout.splitlines()
    assert [row.split()[1] for row in rows[1:21]] == ["Succeeded"] * 20
    assert rows[21] == "and 5 more Succeeded"
    assert rows[22].startswith(f"{engine.namespace}/a-fails ")
    assert rows[-1] == "26 jobs: 1 failed, 25 succeeded (26 ran)"
    assert len(rows) < 26
    assert len(engine.reconcile(ends=1).result["jobs"]) == 26


def logs(engine: Engine, *arguments: str, ends: int = 0) -> CommandResult:
    return engine.run("logs", "-n", engine.namespace, *arguments, ends=ends)


@pytest.mark.real
def test_the_log_of_a_failed_run_is_not_out_of_reach_after_a_rerun(
    target: ClusterUnderTest, engine: Engine
) -> None:
    if isinstance(target, SandboxCluster):
        target.sandbox.node.will(Run(exit_code=3, log=("run 1",)), pod="fails-*-1")
        target.sandbox.node.will(Run(exit_code=3, log=("run 2",)), pod="fails-*-2")
    engine.spec("fails", script="echo run in $HOSTNAME; exit 3")
    engine.reconcile(ends=1)
    first = logs(engine, "fails").stdout
    engine.run("rerun", f"{engine.namespace}/fails", ends=0)
    queued = logs(engine, "fails", ends=1).stderr
    assert "the job is Queued, and has no pod yet" in queued
    assert "(-p for the log of the run before)" in queued
    assert logs(engine, "fails", "-p").stdout == first
    engine.reconcile(ends=1)
    run = engine.status()["fails"]["specHash"][:8]
    assert logs(engine, "fails", "-p").stdout == first
    assert logs(engine, "fails", "--attempt", "1").stdout == first
    assert logs(engine, "fails", "--run", run, "--attempt", "1").stdout == first
    newest = logs(engine, "fails").stdout
    assert newest != first
    assert logs(engine, "fails", "--attempt", "2").stdout == newest
    assert logs(engine, "fails", "--run", run).stdout == newest
    assert "no run 00000000" in logs(engine, "fails", "--run", "00000000", ends=2).stderr


def test_logs_of_several_jobs_are_told_apart(target: ClusterUnderTest, engine: Engine) -> None:
    engine.spec("a", script=says(target, "a", "one", "two", ends=3))
    engine.spec("b", script=says(target, "b", "three"))
    engine.reconcile(ends=1)
    a, b = f"{engine.namespace}/a", f"{engine.namespace}/b"
    of_a, of_b = f"{a} | one\n{a} | two\n", f"{b} | three\n"
    assert logs(engine, "a", "b").stdout == of_a + of_b
    assert logs(engine, "--all").stdout == of_a + of_b
    assert logs(engine, "--failed").stdout == of_a
    assert logs(engine, "-l", "jobs.engine/job=b").stdout == of_b
    assert logs(engine, "--all", "--source", "nowhere").stdout == ""
    followed = logs(engine, "a", "b", "-f").stdout
    assert sorted(followed.splitlines()) == sorted((of_a + of_b).splitlines())
    missing = logs(engine, "a", "nobody", ends=2)
    assert missing.stdout == of_a
    assert "there is no record" in missing.stderr
    assert "not both" in logs(engine, "a", "--all", ends=2).stderr


@pytest.mark.real
def test_following_a_failed_job_ends_with_its_exit_code_where_that_is_asked_for(
    target: ClusterUnderTest, engine: Engine
) -> None:
    engine.spec("fails", script=says(target, "fails", "boom", ends=42))
    engine.reconcile(ends=1)
    assert logs(engine, "fails", "-f").stdout == "boom\n"
    assert logs(engine, "fails", "-f", "--exit-code", ends=42).stdout == "boom\n"
    assert "--exit-code needs -f" in logs(engine, "fails", "--exit-code", ends=2).stderr


@pytest.mark.only("sandbox")
def test_following_a_queued_job_never_waits_in_silence(engine: Engine, sandbox: Sandbox) -> None:
    sandbox.node.will(Run(exit_code=3, log=("boom",)), pod="fails-*")
    engine.spec("fails", script="exit 3")
    engine.reconcile(ends=1)
    engine.run("rerun", f"{engine.namespace}/fails", ends=0)
    following = engine.begin("logs", "-n", engine.namespace, "-f", "fails", stderr=subprocess.PIPE)
    assert following.stderr is not None
    line = following.stderr.readline()
    assert line == (
        f"{engine.namespace}/fails is Queued: rerun asked for;"
        " no engine follows source default; run engine reconcile\n"
    )
    engine.reconcile(ends=1)
    assert finish(following, ends=0).stdout == "boom\n"


def start_pipeline(engine: Engine, *options: str) -> subprocess.Popen[str]:
    """What the example for GitLab runs, in a shell of its own group, in a checkout."""
    text = resource_dir("examples").joinpath("ci", ".gitlab-ci.yml").read_text(encoding="utf-8")
    (command,) = YAML(typ="safe").load(text)["reconcile"]["script"]
    environment = {
        **engine.environment_of_process(),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "CI_PROJECT_ID": engine.namespace,
    }
    command = command.replace("-n ci", f"-n {engine.namespace}")
    return subprocess.Popen(
        ["sh", "-ec", " ".join((command, *options))],
        cwd=engine.folder.parent,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def pipeline(engine: Engine, *options: str, ends: int) -> CommandResult:
    return finish(start_pipeline(engine, *options), timeout=180, ends=ends)


def junit_counts(engine: Engine) -> tuple[str | None, ...]:
    report = ET.parse(engine.folder.parent / "engine.xml").getroot()
    return tuple(report.get(name) for name in ("tests", "failures", "errors"))


@pytest.mark.real
def test_the_pipeline_of_the_example_is_finished_once_its_failure_is_mended(
    target: ClusterUnderTest, engine: Engine, objects: Objects
) -> None:
    engine.folder = engine.folder.with_name("jobs")
    engine.spec("works", script=says(target, "works", "fine"))
    engine.spec("fails", script=says(target, "fails", "no such table", ends=3))
    first = pipeline(engine, ends=1).stdout.splitlines()
    assert first[-2:] == ["  main | no such table", "2 jobs: 1 failed, 1 succeeded (2 ran)"]
    again = pipeline(engine, ends=1).stdout.splitlines()
    assert again[-1] == "2 jobs: 1 failed, 1 succeeded (1 ran)"
    engine.spec("fails", script=says(target, "fails", "all tables are there"))
    assert pipeline(engine, ends=0).stdout.splitlines()[-1] == "2 jobs: 2 succeeded (1 ran)"
    assert (
        pipeline(engine, ends=0).stdout.splitlines()[-1] == "2 jobs: 2 succeeded; nothing changed"
    )
    assert [len(pods_of(objects, name)) for name in ("works", "fails")] == [1, 3]
    written = saved(engine.folder.parent / "logs")
    assert sorted(written.values()) == [
        "all tables are there\n", "fine\n", "no such table\n", "no such table\n",
    ]  # fmt: skip
    assert junit_counts(engine) == ("2", "0", "0")


@pytest.mark.real
@pytest.mark.parametrize("how", ["cancelled", "out of time"])
def test_nothing_of_the_pipeline_of_the_example_is_left_when_it_ends_half_way(
    target: ClusterUnderTest, engine: Engine, objects: Objects, how: str
) -> None:
    """A CI system cancels by a signal to the shell and to all that it started."""
    engine.folder = engine.folder.with_name("jobs")
    engine.spec("works", script=says(target, "works", "fine"), files={"a.txt": "some text"})
    engine.spec("long", script=endless(target, "long"), files={"a.txt": "some text"})
    source = f"project-{engine.namespace}"
    if how == "cancelled":
        running = start_pipeline(engine)
        wait_for_state(engine, "works", "Succeeded")
        wait_for_state(engine, "long", "Running")
        os.killpg(running.pid, signal.SIGTERM)
        told = CommandResult(0, *running.communicate(timeout=120))
        assert running.returncode in (143, -signal.SIGTERM)
        assert told.lines[-1] == "interrupted: 1 job cancelled"
    else:
        told = pipeline(engine, "--timeout", "20s", ends=3)
        assert told.lines[-1] == "timeout: 1 job cancelled"
    assert told.stdout.splitlines()[-1] == "2 jobs: 1 cancelled, 1 succeeded (2 ran)"
    assert [text for _, text in sorted(saved(engine.folder.parent / "logs").items())] == [
        "begun\n", "fine\n",
    ]  # fmt: skip
    assert junit_counts(engine) == ("2", "1", "0")
    wait_until_gone(objects, "long")
    (left,) = objects.pods()
    assert left["metadata"]["labels"]["jobs.engine/source"] == source
    objects.api.wait(lambda: len(objects.owned()) == 1, "the end of what the pod owned")
    assert engine.status()["long"]["state"] == "Cancelled"
    engine.spec("long", script=says(target, "long", "begun"), files={"a.txt": "some text"})
    again = pipeline(engine, ends=0).stdout.splitlines()
    assert again[-1] == "2 jobs: 2 succeeded (1 ran)"
