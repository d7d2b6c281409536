"""`engine status` and `engine describe`: what is known of jobs, and how well."""

import signal

import pytest
from ruamel.yaml import YAML

from engine.sandbox import Sandbox
from tests.support.clusters import ClusterUnderTest
from tests.support.engine import Engine, finish
from tests.support.objects import Objects
from tests.support.status_watch import assert_a_line_for_each_change


def test_status_looks_at_the_pod_where_no_engine_has_recorded_its_end(
    target: ClusterUnderTest, engine: Engine, objects: Objects
) -> None:
    engine.spec("stale", script=target.script("stale", lasts=1))
    engine.spec("stays", script=target.script("stays", lasts=60))
    engine.reconcile("--wait", "applied", ends=0)
    objects.wait_until_over("stale")
    entry = engine.status()["stale"]
    assert entry["state"] in ("Starting", "Running"), "the record is as it was"
    assert entry["observed"]["state"] == "Succeeded"
    assert entry["observed"]["recorded"] is False
    told = engine.run("status", "-n", engine.namespace, ends=0)
    (row,) = [line for line in told.stdout.splitlines() if "/stale " in line]
    assert row.split()[1:3] == ["Succeeded", "1"], "the reason is the state"
    assert "not recorded yet, the record says" in row
    last = f"no engine follows source {target.source}; run engine reconcile"
    assert told.stderr.splitlines() == [last]
    objects.api.delete("pods", objects.pod("stays")["metadata"]["name"], engine.namespace, grace=0)
    objects.api.wait(
        lambda: engine.status()["stays"]["observed"]["reason"] == "PodDeleted", "the deletion"
    )
    engine.reconcile(ends=None)
    assert engine.status()["stale"]["state"] == "Succeeded"


def test_status_says_which_engine_follows(
    target: ClusterUnderTest, engine: Engine, objects: Objects
) -> None:
    engine.spec("job", script=target.script("job", lasts=60))
    flags = ["-n", engine.namespace, str(engine.folder)]
    staying = engine.begin("reconcile", *flags)
    objects.api.wait(lambda: engine.status().get("job", {}).get("state") == "Running", "its run")
    run = engine.run("status", "-n", engine.namespace, "-o", "json", ends=0)
    mine = [one for one in run.result["engines"] if one["source"] == target.source]
    assert [one["follows"] for one in mine] == [True]
    told = engine.run("status", "-n", engine.namespace, ends=0).stderr
    assert f"source {target.source} is followed by {mine[0]['holder']}, renewed" in told
    staying.send_signal(signal.SIGTERM)
    finish(staying, ends=0)
    told = engine.run("status", "-n", engine.namespace, ends=0).stderr
    assert told == f"no engine follows source {target.source}; run engine reconcile\n"
    engine.run("cancel", "job", "-n", engine.namespace, ends=0)
    assert engine.run("status", "-n", engine.namespace, ends=0).stderr == "", "all is over"


def test_what_failed_and_what_is_not_over_comes_before_what_succeeded(
    target: ClusterUnderTest, engine: Engine
) -> None:
    for name, lasts, ends in (("aaa", 0, 0), ("bbb", 300, 0), ("ccc", 0, 3), ("ddd", 0, 4)):
        engine.spec(name, script=target.script(name, lasts=lasts, ends=ends))
    engine.spec("eee", script="true", image="docker.io/library/alpine:3.20")
    engine.reconcile("--timeout", "30s", ends=None)
    space = engine.namespace
    rows = engine.run("status", "-n", space, ends=0).stdout.splitlines()[1:]
    order = [row.split()[0].removeprefix(f"{space}/") for row in rows]
    assert order[:3] == ["ccc", "ddd", "bbb"]
    assert set(order[3:]) == {"aaa", "eee"}
    failed = engine.run("status", "-n", space, "--failed", "-o", "name", ends=0).stdout
    assert failed == f"{space}/ccc\n{space}/ddd\n"
    assert engine.run("status", f"{space}/aaa", "--failed", ends=0).stdout == ""


def test_status_of_one_source_shows_no_job_of_another(engine: Engine) -> None:
    space = engine.namespace
    for name in ("docs", "web"):
        engine.spec(name, file=f"{name}/{name}.yaml", script="true")
        folder = str(engine.folder / name)
        engine.run("reconcile", "--once", folder, "--source", f"{name}-{space}", ends=0)
    web = ("status", "-n", space, "--source", f"web-{space}", "-o", "name")
    assert engine.run(*web, ends=0).stdout == f"{space}/web\n"
    both = engine.run("status", "-n", space, "-o", "name", ends=0).stdout
    assert both == f"{space}/docs\n{space}/web\n", "ENGINE_SOURCE is neither"
    none = engine.run("status", "-n", space, "--source", f"api-{space}", ends=0)
    words = f"no jobs of source api-{space} in namespace {space} (-A looks in all)\n"
    assert (none.stdout, none.stderr) == ("", words)


def test_status_has_failed_jobs_first_and_every_format(
    target: ClusterUnderTest, engine: Engine, objects: Objects
) -> None:
    engine.spec("aaa", script=target.script("aaa"))
    engine.spec("zzz", script=target.script("zzz", ends=3))
    engine.reconcile(ends=1)
    space = engine.namespace
    head, first, second = engine.run("status", "-n", space, ends=0).stdout.splitlines()
    columns = ["JOB", "STATE", "REASON", "ATTEMPTS", "AGE", "MESSAGE"]
    assert head.split() == columns
    assert first.split()[:3] == [f"{space}/zzz", "Failed", "ScriptFailed"]
    assert second.split()[:3] == [f"{space}/aaa", "Succeeded", "1"]
    wide = engine.run("status", "-n", space, "-o", "wide", ends=0).stdout.splitlines()
    assert wide[0].split()[5:10] == ["POD", "NODE", "RUN", "SOURCE", "ENGINE"]
    assert objects.pod("zzz")["metadata"]["name"] in wide[1]
    assert objects.pod("zzz")["spec"]["nodeName"] in wide[1]
    names = engine.run("status", "-n", space, "-o", "name", ends=0).stdout
    assert names == f"{space}/aaa\n{space}/zzz\n"
    as_yaml = engine.run("status", "-n", space, "-o", "yaml", ends=0).stdout
    as_json = engine.run("status", "-n", space, "-o", "json", ends=0).result
    assert YAML(typ="safe", pure=True).load(as_yaml)["jobs"] == as_json["jobs"]
    only = engine.run("status", f"{space}/zzz", "-o", "name", ends=0)
    assert only.stdout == f"{space}/zzz\n"
    nobody = engine.run("status", f"{space}/nobody", "aaa", "-n", space, ends=2)
    assert f"{space}/nobody: there is no record of this job" in nobody.stderr
    assert "/aaa " in nobody.stdout


def test_several_namespaces_are_shown_and_contradictions_refused(
    target: ClusterUnderTest, engine: Engine
) -> None:
    engine.spec("job", script=target.script("job"))
    engine.reconcile(ends=0)
    both = ("status", "-n", "default", "-n", engine.namespace, "-o", "name")
    assert f"{engine.namespace}/job" in engine.run(*both, ends=0).stdout.splitlines()
    assert "not both" in engine.run("status", "-A", "-n", "ci", ends=2).stderr
    assert "--watch" in engine.run("status", "-w", "-o", "json", ends=2).stderr
    assert "selector" in engine.run("status", "-l", "bad selector!!", ends=2).stderr


@pytest.mark.only("sandbox")
def test_without_the_right_to_see_pods_the_records_are_shown_and_that_is_told(
    engine: Engine, sandbox: Sandbox, target: ClusterUnderTest
) -> None:
    engine.spec("long", script=target.script("long", lasts=60))
    engine.reconcile("--wait", "applied", ends=0)
    sandbox.deny("list", "pods")
    sandbox.deny("list", "leases")
    sandbox.deny("list", "events")
    told = engine.run("status", "-n", engine.namespace, ends=0)
    assert "pods can't be listed" in told.stderr
    assert f"whether an engine follows source {target.source} is not known" in told.stderr
    assert "PodDeleted" not in told.stdout
    described = engine.run("describe", f"{engine.namespace}/long", ends=0).stdout
    assert "events can't be listed" in described


def test_a_pod_whose_labels_were_changed_is_found_by_its_name(
    target: ClusterUnderTest, engine: Engine, objects: Objects
) -> None:
    engine.spec("job", script=target.script("job", lasts=60))
    engine.reconcile("--wait", "applied", ends=0)
    objects.wait_until_running("job")
    labels = {"metadata": {"labels": {"app.kubernetes.io/managed-by": None}}}
    objects.api.patch("pods", objects.pod("job")["metadata"]["name"], labels, engine.namespace)
    observed = engine.status()["job"]["observed"]
    assert (observed["state"], observed["recorded"]) == ("Running", True)


def test_watch_prints_a_line_for_each_change(
    target: ClusterUnderTest, engine: Engine, objects: Objects
) -> None:
    engine.spec("job", script=target.script("job", lasts=3))
    engine.reconcile("--wait", "applied", ends=0)
    assert_a_line_for_each_change(
        engine,
        objects,
        "job",
        lambda: objects.api.delete("configmaps", "job.record", engine.namespace),
    )


@pytest.mark.real
def test_describe_tells_attempts_pods_events_and_what_a_job_waits_for(
    target: ClusterUnderTest, engine: Engine, objects: Objects
) -> None:
    engine.spec("fails", script=target.script("fails", ends=3))
    engine.reconcile(ends=1)
    engine.spec("long", script=target.script("long", lasts=300), timeout="10m")
    engine.reconcile("--wait", "applied", ends=1)
    space = engine.namespace
    objects.wait_until_running("long")
    fails, running = engine.run("describe", f"{space}/fails", f"{space}/long", ends=0).stdout.split(
        "\n\n"
    )
    pod = objects.pod("fails")
    for words in (
        f"Job:        {space}/fails",
        "State:      Failed ScriptFailed",
        f"Source:     {target.source}\n",
        f"1  ScriptFailed, exit code 3: pod {pod['metadata']['name']} on",
        pod["spec"]["nodeName"],
        "main, image ",
        "ended with 3",
        "AttemptFailed",
        f"Next:       nothing, until its spec changes or engine rerun {space}/fails",
    ):
        assert words in fails
    assert "State:      Running" in running
    assert "Waits for:  the end of its main container" in running
    assert "Next:       its outcome is recorded" in running
    assert f"Engine:     no engine follows source {target.source}; run engine reconcile" in running
    assert "Engine:" not in fails
    run = engine.run("describe", "-n", space, "fails", "-o", "json", ends=0)
    (entry,) = run.result["jobs"]
    assert entry["reason"] == "ScriptFailed"
    assert {"Scheduled", "AttemptFailed"} <= {event["reason"] for event in entry["events"]}
    assert entry["waitsFor"] is None
    assert entry["next"].startswith("nothing, until its spec changes")
    missing = engine.run("describe", f"{space}/nobody", f"{space}/fails", ends=2)
    assert f"{space}/nobody: there is no record of this job" in missing.stderr
    assert f"Job:        {space}/fails" in missing.stdout


def test_a_queued_job_is_described_with_its_place_in_the_line(
    target: ClusterUnderTest, engine: Engine, objects: Objects
) -> None:
    quota = {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "0"}}}
    objects.api.create("resourcequotas", quota, engine.namespace)
    objects.api.wait(
        lambda: objects.api.get("resourcequotas", "q", engine.namespace)["status"].get("hard"),
        "quota in force",
    )
    engine.spec("waits", script=target.script("waits"))
    engine.reconcile("--queue-timeout", "1s", ends=5)
    told = engine.run("describe", f"{engine.namespace}/waits", ends=0).stdout
    assert "State:      Queued QuotaExceeded" in told
    assert "Waits for:  room in a quota, 1 of 1 in the queue" in told
    assert "Next:       attempt 1 starts" in told
    assert "exceeded quota: q" in told
