"""How often a job runs, and what an invocation writes."""

import signal
from typing import Any

import pytest

from tests.support.clusters import WRITES, ClusterUnderTest
from tests.support.engine import Engine, finish
from tests.support.objects import Objects


@pytest.mark.real
def test_a_second_run_makes_no_write_and_says_that_nothing_changed(
    engine: Engine, target: ClusterUnderTest
) -> None:
    engine.spec("good", script="true", secrets={"A": {"value": "anything"}})
    engine.spec("bad", script=target.script("bad", ends=1))
    engine.reconcile(ends=1)
    target.forget_requests()
    again = engine.reconcile(ends=1)
    assert [job["changed"] for job in again.result["jobs"]] == [False, False]
    table = engine.run("reconcile", "--once", str(engine.folder))
    assert table.stdout.splitlines()[-1] == "2 jobs: 1 failed, 1 succeeded; nothing changed"
    requests = target.requests()
    each = ["records", "pods", "pods to be pruned"]
    if target.source != "default":
        each.append("records where no spec is any more")
    assert requests.count("list") == 2 * len(each)
    assert [verb for verb in requests if verb in WRITES] == []
    assert len(requests) <= 2 * 10


def test_a_changed_spec_is_a_new_run_and_the_old_one_is_history(
    engine: Engine, objects: Objects, target: ClusterUnderTest
) -> None:
    engine.spec("job", script="true")
    engine.reconcile(ends=0)
    engine.spec("job", script=target.script("job", ends=4))
    run = engine.reconcile(ends=1)
    assert run.job("job")["exitCode"] == 4
    assert [past["state"] for past in engine.status()["job"]["history"]] == ["Succeeded"]
    assert len(objects.pods()) == 2


@pytest.mark.real
def test_a_spec_that_changes_while_it_runs_replaces_the_run(
    engine: Engine, objects: Objects, target: ClusterUnderTest
) -> None:
    engine.spec("job", script=target.script("job", lasts=60))
    process = engine.start("--wait", "applied")
    first = objects.wait_until_running("job")["metadata"]["uid"]
    finish(process, ends=0)
    engine.spec("job", script=target.script("job") + "# changed\n")
    engine.reconcile(ends=0)
    pod = objects.api.wait(lambda: _single(objects), "one pod", timeout=40)
    assert pod["metadata"]["uid"] != first
    past = engine.status()["job"]["history"][0]
    assert (past["state"], past["reason"]) == ("Cancelled", "Superseded")


def test_the_rerun_token_runs_the_same_spec_once_more(engine: Engine, objects: Objects) -> None:
    engine.spec("job", script="true")
    engine.reconcile(ends=0)
    engine.spec("job", script="true", rerun="once more")
    assert engine.reconcile().job("job")["changed"] is True
    assert engine.reconcile().job("job")["changed"] is False
    assert len(objects.pods()) == 2


def test_fifty_specs_at_once_all_finish(engine: Engine, objects: Objects) -> None:
    for number in range(50):
        engine.spec(f"job-{number}", script=f"echo {number}", files={"a": str(number)})
    run = engine.reconcile(timeout=170, ends=0)
    assert len(run.result["jobs"]) == 50
    assert {job["state"] for job in run.result["jobs"]} == {"Succeeded"}
    assert len(objects.pods()) == 50


def test_a_job_with_a_name_of_48_characters_runs(engine: Engine, objects: Objects) -> None:
    name = "a" * 48
    engine.spec(name, script="hostname", files={"a": "b"})
    engine.reconcile(ends=0)
    objects.wait_until_over(name)


@pytest.mark.clock(1)
def test_the_timeout_ends_the_waiting_with_3_and_leaves_the_job_running(
    engine: Engine, objects: Objects, target: ClusterUnderTest
) -> None:
    engine.spec("long", script=target.script("long", lasts=10))
    run = engine.reconcile("--timeout", "5s", ends=3)
    assert "1 job is not over" in run.stderr
    engine.reconcile(ends=0)
    assert len(run.job("long")["attempts"]) == 1


def test_ctrl_c_ends_with_130_and_the_next_engine_takes_over(
    engine: Engine, target: ClusterUnderTest
) -> None:
    engine.spec("long", script=target.script("long", lasts=20))
    process = engine.start()
    assert any("/long: Running" in line for line in process.stderr or ())
    process.send_signal(signal.SIGINT)
    run = finish(process, ends=130)
    assert run.job("long")["state"] == "Running", "what was seen last"
    assert "Traceback" not in run.stderr
    assert "the next reconcile takes" in run.stderr
    after = engine.reconcile(ends=0)
    assert len(after.job("long")["attempts"]) == 1


def test_what_another_source_made_is_refused_by_name(engine: Engine, objects: Objects) -> None:
    engine.spec("mine", script="true")
    engine.reconcile("--source", "team-a", ends=0)
    run = engine.reconcile("--source", "team-b")
    assert run.code != 0
    assert run.job("mine")["changed"] is False
    assert "belongs to source 'team-a'" in run.stderr
    assert len(objects.pods()) == 1


def test_no_specs_at_all_are_a_mistake_unless_they_are_meant(engine: Engine) -> None:
    assert "--allow-empty" in engine.reconcile(ends=2).stderr
    assert engine.reconcile("--allow-empty", ends=0).result["jobs"] == []


def _single(objects: Objects) -> dict[str, Any] | None:
    pods = objects.pods()
    return pods[0] if len(pods) == 1 else None
