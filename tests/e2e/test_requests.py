"""What people ask of a job by name: cancel, rerun."""

import re

import pytest

from tests.e2e.conftest import Quota
from tests.support.clusters import ClusterUnderTest
from tests.support.engine import Engine, finish
from tests.support.engine_process import EngineProcess
from tests.support.objects import Objects


@pytest.mark.real
def test_a_cancelled_job_loses_its_pod_and_its_record_tells_who_and_why(
    engine: Engine, objects: Objects, target: ClusterUnderTest
) -> None:
    engine.spec("long", script=target.script("long", lasts=60), files={"a": "b"})
    process = engine.start()
    objects.wait_until_running("long")
    done = engine.run("cancel", "long", "-n", engine.namespace, "--reason", "wrong branch", ends=0)
    assert "cancelled; pod long-" in done.stdout
    run = finish(process, ends=1)
    job = run.job("long")
    assert (job["state"], job["reason"]) == ("Cancelled", "Cancelled")
    assert job["message"].startswith("cancelled by ")
    assert job["message"].endswith(": wrong branch")
    objects.api.wait(lambda: objects.pods() == [], "end of the pod", timeout=60)
    objects.wait_until_clean()
    assert engine.reconcile().job("long")["changed"] is False


def test_a_queued_job_is_cancelled_without_ever_having_a_pod(
    engine: Engine, objects: Objects, limit: Quota
) -> None:
    limit({"pods": "0"})
    engine.spec("waiting", script="true")
    engine.reconcile("--queue-timeout", "1s", ends=5)
    done = engine.run("cancel", "waiting", "-n", engine.namespace)
    assert "cancelled; it had no pod" in done.stdout
    assert engine.status()["waiting"]["state"] == "Cancelled"
    assert objects.pods() == []


def test_what_is_over_stays_over_and_what_is_unknown_is_told(
    engine: Engine, objects: Objects
) -> None:
    engine.spec("done", script="true")
    engine.reconcile(ends=0)
    again = engine.run("cancel", "done", "-n", engine.namespace, ends=0)
    assert "is already over: Succeeded" in again.stdout
    unknown = engine.run("cancel", "nobody", "-n", engine.namespace, ends=2)
    assert "no record of this job" in unknown.stderr


def test_each_of_several_names_has_its_result_whatever_the_order(engine: Engine) -> None:
    engine.spec("done", script="true")
    engine.reconcile(ends=0)
    place = engine.namespace
    for names in (("nobody", f"{place}/done"), ("done", "nobody")):
        said = engine.run("rerun", *names, "-n", place, ends=2)
        assert said.stdout.startswith(f"{place}/done: will run again")
        assert said.stderr.startswith(f"error: {place}/nobody: there is no record of this job")
        engine.reconcile(ends=0)
    elsewhere = engine.run("rerun", f"{place}/done", "-n", "elsewhere", ends=2)
    assert "-n names another namespace" in elsewhere.stderr


def test_what_failed_runs_again_together(engine: Engine, target: ClusterUnderTest) -> None:
    engine.spec("good", script=target.script("good"))
    engine.spec("bad", script=target.script("bad", ends=3))
    engine.spec("worse", script=target.script("worse", ends=4))
    engine.reconcile(ends=1)
    place = engine.namespace
    who = f"no engine follows source {target.source}; run engine reconcile"
    dry = engine.run("rerun", "--failed", "-n", place, "--dry-run=client", ends=0)
    assert f"{place}/bad: would run again; its last run was Failed; {who}" in dry.stdout
    said = engine.run("rerun", "--failed", "-n", place, ends=0)
    assert said.stdout.splitlines() == [
        f"{place}/{job}: will run again; its last run was Failed; {who}" for job in ("bad", "worse")
    ]
    assert engine.run("rerun", "--failed", "-n", place, ends=0).stdout == ""
    assert "not both" in engine.run("rerun", "--failed", "bad", ends=2).stderr
    assert "no job is named" in engine.run("rerun", ends=2).stderr


def test_all_jobs_of_a_selection_are_cancelled(engine: Engine, limit: Quota) -> None:
    limit({"pods": "0"})
    for name in ("one", "two"):
        engine.spec(name, script="true")
    engine.reconcile("--queue-timeout", "1s", ends=5)
    where = ("-n", engine.namespace)
    assert engine.run("cancel", "-l", "jobs.engine/job=nobody", *where, ends=0).stdout == ""
    one = engine.run("cancel", "-l", "jobs.engine/job=one", *where, ends=0)
    assert one.stdout == f"{engine.namespace}/one: cancelled; it had no pod\n"
    rest = engine.run("cancel", "--all", "-l", "jobs.engine/component=record", *where, ends=0)
    assert rest.stdout == f"{engine.namespace}/two: cancelled; it had no pod\n"


def test_after_rerun_the_same_spec_runs_once_more(engine: Engine, objects: Objects) -> None:
    engine.spec("again", script="true")
    engine.reconcile(ends=0)
    engine.run("rerun", "again", "-n", engine.namespace, ends=0)
    run = engine.reconcile(ends=0)
    (attempt,) = run.job("again")["attempts"]
    assert (attempt["number"], attempt["pod"][-2:]) == (1, "-2")
    assert len(objects.pods()) == 2
    assert engine.reconcile().job("again")["changed"] is False
    assert [past["state"] for past in engine.status()["again"]["history"]] == ["Succeeded"]


def test_ten_reconciles_leave_a_finished_job_alone_and_rerun_runs_it_once(
    engine: Engine, objects: Objects
) -> None:
    engine.spec("job", script="true")
    engine.reconcile(ends=0)
    objects.api.delete("pods", objects.pod("job")["metadata"]["name"], objects.namespace, grace=0)
    for _ in range(10):
        assert engine.reconcile().job("job")["changed"] is False
    objects.api.wait(lambda: objects.pods() == [], "end of the pod")
    engine.run("rerun", "job", "-n", engine.namespace)
    engine.reconcile(ends=0)
    assert len(objects.pods()) == 1


def test_a_running_job_is_not_run_again(
    engine: Engine, objects: Objects, target: ClusterUnderTest
) -> None:
    engine.spec("long", script=target.script("long", lasts=60))
    engine.reconcile("--wait", "applied", ends=0)
    done = engine.run("rerun", "long", "-n", engine.namespace, ends=2)
    assert f"engine cancel {engine.namespace}/long first" in done.stderr


def test_a_rerun_is_never_promised_of_a_job_whose_spec_is_gone(
    engine: Engine, target: ClusterUnderTest
) -> None:
    engine.environment["ENGINE_SOURCE"] = source = f"{target.source}-own"
    engine.spec("stays", script=target.script("stays"))
    engine.spec("gone", script=target.script("gone", ends=3))
    engine.reconcile(ends=1)
    spec = engine.folder / "gone.yaml"
    aside = spec.rename(engine.folder.parent / "gone.yaml")
    where, job = ("-n", engine.namespace), f"{engine.namespace}/gone"
    refused = engine.run("rerun", "gone", "-f", str(engine.folder), *where, ends=2)
    assert refused.stderr == f"error: {job}: there is no spec of this job\n"
    failed = engine.run("rerun", "--failed", "-f", str(engine.folder), *where, ends=0)
    assert (failed.stdout, failed.stderr) == ("", "no such jobs\n")
    engine.reconcile(ends=0)
    refused = engine.run("rerun", "gone", *where, ends=2)
    assert f"error: {job}: its spec is gone from source {source} since 20" in refused.stderr
    assert "(if it is back, name it: -f FILE)" in refused.stderr
    assert engine.status()["gone"]["state"] == "Failed", "its failure is still told"
    aside.rename(spec)
    said = engine.run("rerun", "gone", "-f", str(spec), *where, ends=0)
    assert said.stdout.startswith(f"{job}: will run again; its last run was")
    assert len(engine.reconcile(ends=1).job("gone")["attempts"]) == 1
    assert len(engine.status()["gone"]["history"]) == 1


def test_a_rerun_says_which_engine_runs_it(engine: Engine, target: ClusterUnderTest) -> None:
    engine.spec("job", script=target.script("job"))
    with EngineProcess(engine) as staying:
        staying.wait_for_line("job: Succeeded")
        said = engine.run("rerun", "job", "-n", engine.namespace, ends=0).stdout
    assert re.search(r"job: will run again; .*; source \S+ is followed by \S+, renewed", said)


def test_to_cancel_a_queued_rerun_never_hides_that_the_job_had_failed(
    engine: Engine, objects: Objects, target: ClusterUnderTest
) -> None:
    engine.spec("bad", script=target.script("bad", ends=3))
    engine.reconcile(ends=1)
    before, where = engine.status()["bad"], ("-n", engine.namespace)
    engine.run("rerun", "bad", *where, ends=0)
    assert engine.status()["bad"]["state"] == "Queued"
    said = engine.run("cancel", "bad", *where, ends=0)
    assert said.stdout == (
        f"{engine.namespace}/bad: its rerun, which had not begun, is cancelled;"
        " its last run was Failed\n"
    )
    after = engine.status()["bad"]
    del before["recordedAt"], after["recordedAt"]
    assert after == before
    pods = len(objects.pods())
    assert engine.reconcile(ends=1).job("bad")["changed"] is False
    assert len(objects.pods()) == pods
    engine.run("rerun", "bad", *where, ends=0)
    assert [a["pod"][-2:] for a in engine.reconcile(ends=1).job("bad")["attempts"]] == ["-2"]
