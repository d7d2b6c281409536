"""JobDefaults that change after jobs have run with them: told, and run again when asked for."""

import json
from typing import Any

import pytest

from engine.sandbox import Sandbox
from tests.support.clusters import ClusterUnderTest
from tests.support.engine import Engine
from tests.support.engine_process import EngineProcess
from tests.support.objects import Objects


def set_default(engine: Engine, level: str) -> None:
    head = {"apiVersion": "jobs.engine/v1alpha1", "kind": "JobDefaults"}
    engine.write("defaults.yaml", json.dumps({**head, "spec": {"env": {"LEVEL": level}}}))


def run_with_defaults(engine: Engine, target: ClusterUnderTest) -> None:
    """Jobs one and two have their LEVEL from the defaults, which change then; own has its own."""
    set_default(engine, "info")
    for name in ("one", "two"):
        engine.spec(name, script=target.script(name))
    engine.spec("own", script=target.script("own"), env={"LEVEL": "debug"})
    run = engine.reconcile(ends=0)
    assert [job["outdatedFields"] for job in run.result["jobs"]] == [[], [], []]
    assert "other defaults" not in run.stderr
    set_default(engine, "error")


def line(engine: Engine, jobs: str) -> str:
    words = "ran with other defaults (spec.env): engine rerun --outdated -f"
    return f"{jobs} {words} {engine.folder}"


def level(pod: dict[str, Any]) -> str:
    env = pod["spec"]["containers"][0]["env"]
    return next(str(one["value"]) for one in env if one["name"] == "LEVEL")


def test_a_changed_default_is_never_told_as_nothing_changed_and_runs_once_it_is_asked_for(
    engine: Engine, objects: Objects, target: ClusterUnderTest
) -> None:
    run_with_defaults(engine, target)
    told, space, folder = line(engine, "2 jobs"), engine.namespace, str(engine.folder)
    before = engine.status()
    again = engine.reconcile(ends=0)
    assert told in again.stderr
    fields = {job["name"]: job["outdatedFields"] for job in again.result["jobs"]}
    assert fields == {"one": ["spec.env"], "two": ["spec.env"], "own": []}
    assert not any(job["changed"] for job in again.result["jobs"])
    assert engine.status() == before, "nothing was written"

    diff = engine.run("diff", folder, ends=0)
    words = "Succeeded, spec unchanged; ran with other defaults (spec.env)"
    assert diff.stdout.splitlines() == [f"{space}/{j}: leave: {words}" for j in ("one", "two")]
    assert told in diff.stderr
    as_json = engine.run("diff", folder, "-o", "json", ends=0)
    assert as_json.job("one")["outdatedFields"] == ["spec.env"]
    assert as_json.job("own")["outdatedFields"] == []

    status = engine.run("status", "-f", folder, ends=0)
    assert status.stdout.count("ran with other defaults (spec.env)") == 2
    assert status.stderr == f"{told}\n"
    known = engine.run("status", "-f", folder, "-o", "json", ends=0)
    assert known.job("two")["outdatedFields"] == ["spec.env"]

    asked = ("rerun", "--outdated", "-f", folder)
    listed = engine.run(*asked, "--dry-run", ends=0).stdout.splitlines()
    assert [row.split(":")[0] for row in listed] == [f"{space}/one", f"{space}/two"]
    assert all(row.endswith("; ran with other defaults (spec.env)") for row in listed)
    assert engine.status() == before, "a dry run writes nothing"
    assert len(engine.run(*asked, ends=0).stdout.splitlines()) == 2
    run = engine.reconcile(ends=0)
    assert "other defaults" not in run.stderr
    assert [job["changed"] for job in run.result["jobs"]] == [True, False, True]
    assert sorted(map(level, objects.pods())) == ["debug", "error", "error", "info", "info"]
    assert engine.run(*asked, ends=0).stderr == "no such jobs\n"


def test_a_default_that_is_changed_back_is_no_matter(
    engine: Engine, target: ClusterUnderTest
) -> None:
    run_with_defaults(engine, target)
    assert line(engine, "2 jobs") in engine.reconcile(ends=0).stderr
    set_default(engine, "info")
    assert "other defaults" not in engine.reconcile(ends=0).stderr


def test_a_running_job_counts_and_is_not_run_again_before_its_end(
    engine: Engine, target: ClusterUnderTest
) -> None:
    set_default(engine, "info")
    engine.spec("long", script=target.script("long", lasts=300))
    engine.reconcile("--wait", "applied", ends=0)
    set_default(engine, "error")
    assert line(engine, "1 job") in engine.reconcile("--wait", "applied", ends=0).stderr
    refused = engine.run("rerun", "--outdated", "-f", str(engine.folder), ends=2)
    assert f"engine cancel {engine.namespace}/long first" in refused.stderr
    assert "--outdated compares" in engine.run("rerun", "--outdated", ends=2).stderr


def test_an_engine_that_stays_says_it_once_for_each_change(
    engine: Engine, objects: Objects, target: ClusterUnderTest
) -> None:
    set_default(engine, "info")
    for name in ("one", "two"):
        engine.spec(name, script=target.script(name))
    with EngineProcess(engine) as staying:
        for name in ("one", "two"):
            staying.wait_for_line(f"{name}: Succeeded")
        assert "other defaults" not in staying.text
        set_default(engine, "error")
        staying.wait_for_line(line(engine, "2 jobs"))
        engine.spec("three", script=target.script("three"))
        staying.wait_for_line("three: Succeeded")
        asked = ("--outdated", "-f", str(engine.folder), "--source", engine.namespace)
        engine.run("rerun", *asked, ends=0)
        objects.api.wait(
            lambda: sorted(map(level, objects.pods())) == ["error"] * 3 + ["info"] * 2, "the runs"
        )
        assert staying.text.count("other defaults") == 1
    with EngineProcess(engine) as staying:
        staying.wait_for_line("specs read: 3 jobs in 4 files")
        engine.spec("four", script=target.script("four"))
        staying.wait_for_line("four: Succeeded")
        assert "other defaults" not in staying.text


@pytest.mark.only("sandbox")
def test_to_say_it_costs_no_request_and_no_write(
    engine: Engine, sandbox: Sandbox, target: ClusterUnderTest
) -> None:
    run_with_defaults(engine, target)
    counts = []
    for value in ("info", "error"):
        set_default(engine, value)
        sandbox.requests.clear()
        said = engine.reconcile(ends=0).stderr
        assert (line(engine, "2 jobs") in said) is (value == "error")
        assert sandbox.requests.writes == []
        counts.append(len(sandbox.requests))
    assert counts[0] == counts[1]
