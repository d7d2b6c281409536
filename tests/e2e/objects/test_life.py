"""The life of a JobSpec object, from its creation to its deletion."""

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from engine.cluster.connect import connect
from engine.cluster.records import STATUS_RECORDS, job_object
from engine.informers.job_specs import object_hash
from engine.lifecycle.record import MaskedRecord, Record
from engine.sandbox import Fault, Latency, Sandbox
from tests.support.api import Object
from tests.support.clusters import ClusterUnderTest
from tests.support.engine import Engine
from tests.support.engine_process import EngineProcess
from tests.support.job_specs import JOB_SPECS, JobSpecs, conditions


@pytest.mark.real
def test_an_applied_object_runs_once_and_its_status_is_the_record(
    engine: Engine, specs: JobSpecs, staying: EngineProcess, target: ClusterUnderTest
) -> None:
    target.forget_requests()
    engine.spec("build", script=target.script("build"), secrets={"A": {"value": "x"}})
    status = specs.ended("build")
    assert (status["state"], status["reason"]) == ("Succeeded", "Succeeded")
    assert conditions(status) == {"Ready": "True", "Finished": "True", "Complete": "True"}
    (pod,) = specs.pods("build")
    (owner,) = pod["metadata"]["ownerReferences"]
    found = specs.get("build")["metadata"]
    assert (owner["uid"], owner["controller"]) == (found["uid"], True)
    assert owner["blockOwnerDeletion"] is False
    assert "finalizers" not in found
    secret = specs.api.get("secrets", pod["metadata"]["name"], specs.namespace)
    assert secret["metadata"]["ownerReferences"][0]["uid"] == pod["metadata"]["uid"]
    assert not [
        one
        for one in specs.api.list("configmaps", specs.namespace)
        if one["metadata"]["name"].endswith(".record")
    ]
    writes = [one for one in target.writes() if one[1].startswith("jobspecs")]
    assert 2 <= len(writes) <= 3
    others = [one for one in target.writes() if one not in writes and one[1] != "leases"]
    assert sorted(one[1] for one in others) == ["configmaps", "pods", "pods", "secrets"]


@pytest.mark.real
def test_applying_it_again_writes_and_starts_nothing(
    engine: Engine, specs: JobSpecs, staying: EngineProcess, target: ClusterUnderTest
) -> None:
    spec = {"script": target.script("build")}
    engine.spec("build", **spec)
    before = specs.ended("build")
    target.forget_requests()
    engine.spec("build", **spec)
    engine.spec("other", script=target.script("other"))
    specs.ended("other")
    assert specs.status("build") == before
    assert not [one for one in target.writes() if one[2].startswith("build")]


@pytest.mark.real
def test_edits_start_a_run_only_where_what_runs_has_changed(
    engine: Engine, specs: JobSpecs, staying: EngineProcess, target: ClusterUnderTest
) -> None:
    engine.spec("build", script=target.script("build"))
    first = specs.ended("build")
    uids = {pod["metadata"]["uid"] for pod in specs.pods("build")}
    specs.patch("build", ttl="2h")
    specs.wait_for("build", "Succeeded")
    specs.patch("build", timeout="30m")
    kept = specs.wait_for("build", "Succeeded")
    assert {pod["metadata"]["uid"] for pod in specs.pods("build")} == uids
    assert kept["finishedAt"] == first["finishedAt"]
    assert specs.pods("build")[0]["metadata"]["annotations"]["jobs.engine/ttl"] == "7200"
    specs.patch("build", env={"NEW": "1"})
    again = specs.ended("build")
    assert again["runHash"] != first["runHash"]
    specs.patch("build", rerun="please")
    last = specs.wait_for("build", "Succeeded")
    assert last["runHash"] not in (first["runHash"], again["runHash"])


@pytest.mark.real
def test_deleting_it_while_it_runs_ends_the_job_and_leaves_nothing_even_without_an_engine(
    engine: Engine, specs: JobSpecs, target: ClusterUnderTest
) -> None:
    with EngineProcess(engine):
        script = target.script("build", lasts=600)
        engine.spec("build", script=script, secrets={"A": {"value": "x"}})
        specs.running_pod("build")
    specs.delete("build")
    specs.wait_until_nothing_is_left("build")


@pytest.mark.real
def test_an_object_that_is_deleted_and_created_anew_is_a_new_run(
    engine: Engine, specs: JobSpecs, staying: EngineProcess, target: ClusterUnderTest
) -> None:
    script = target.script("build", lasts=600)
    engine.spec("build", script=script)
    first = specs.running_pod("build")
    specs.delete("build")
    engine.spec("build", script=script)

    def anew() -> Object | None:
        pod = specs.running_pod("build")
        return pod if pod["metadata"]["uid"] != first["metadata"]["uid"] else None

    specs.api.wait(anew, "pod of the new object")
    assert len(specs.get("build")["status"]["record"]["attempts"]) == 1
    specs.delete("build")
    specs.wait_until_nothing_is_left("build")
    assert "error" not in staying.text


@pytest.mark.real
def test_the_ttl_takes_the_pod_and_never_the_object(
    engine: Engine, specs: JobSpecs, target: ClusterUnderTest
) -> None:
    spec: dict[str, Any] = {"script": target.script("build"), "ttlAfterFinished": {"success": "0s"}}
    with EngineProcess(engine, "--prune-interval", "500ms"):
        engine.spec("build", **spec)
        status = specs.ended("build")
        specs.wait_until_nothing_is_left("build")
        engine.spec("build", **spec)
        engine.spec("other", script=target.script("other"))
        specs.ended("other")
        assert specs.status("build") == status
        assert not specs.pods("build")


@pytest.mark.real
def test_a_suspended_object_begins_once_it_is_resumed(
    engine: Engine, specs: JobSpecs, staying: EngineProcess, target: ClusterUnderTest
) -> None:
    engine.spec("build", script=target.script("build"), suspend=True)
    status = specs.wait_for("build", "Suspended")
    assert conditions(status) == {"Ready": "True", "Finished": "False", "Suspended": "True"}
    assert not specs.pods("build")
    specs.patch("build", suspend=False)
    assert specs.ended("build")["state"] == "Succeeded"


def test_suspending_a_run_that_has_begun_lets_it_go_on(
    engine: Engine, specs: JobSpecs, staying: EngineProcess, target: ClusterUnderTest
) -> None:
    engine.spec("build", script=target.script("build", lasts=3))
    staying.wait_for_line("build: Running")
    specs.patch("build", suspend=True)
    assert specs.ended("build")["state"] == "Succeeded"
    assert staying.text.count("build: Starting") == 1
    specs.patch("build", env={"NEW": "1"})
    specs.wait_for("build", "Suspended")


@pytest.mark.real
def test_an_object_that_another_controller_manages_is_left_alone(
    engine: Engine, specs: JobSpecs, staying: EngineProcess, target: ClusterUnderTest
) -> None:
    engine.spec("build", script="true", managedBy="kueue.x-k8s.io/multikueue")
    engine.spec("other", script=target.script("other"))
    specs.ended("other")
    assert specs.status("build") == {"observedGeneration": -1}
    assert not specs.pods("build")


@pytest.mark.real
def test_a_pod_whose_object_was_deleted_as_an_orphan_runs_on(
    engine: Engine, specs: JobSpecs, staying: EngineProcess, target: ClusterUnderTest
) -> None:
    engine.spec("build", script=target.script("build", lasts=600))
    pod = specs.running_pod("build")
    specs.delete("build", propagation="Orphan")
    specs.api.wait(
        lambda: specs.api.find(JOB_SPECS, "build", specs.namespace) is None, "end of the object"
    )
    engine.spec("other", script=target.script("other"))
    specs.ended("other")
    left = specs.api.get("pods", pod["metadata"]["name"], specs.namespace)["metadata"]
    assert left["uid"] == pod["metadata"]["uid"]
    assert "deletionTimestamp" not in left
    specs.api.delete("pods", left["name"], specs.namespace, grace=0)


@pytest.mark.real
def test_an_object_with_an_owner_of_its_own_just_works(
    engine: Engine, specs: JobSpecs, staying: EngineProcess, target: ClusterUnderTest
) -> None:
    made = specs.api.create(
        "configmaps", {"metadata": {"name": "parent"}, "data": {}}, specs.namespace
    )
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "parent"}
    owner["uid"] = made["metadata"]["uid"]
    document = {
        "apiVersion": "jobs.engine/v1alpha1",
        "kind": "JobSpec",
        "metadata": {
            "name": "build",
            "namespace": specs.namespace,
            "ownerReferences": [owner],
            "annotations": {"meta.helm.sh/release-name": "web"},
            "labels": {"app.kubernetes.io/managed-by": "Helm"},
        },
        "spec": {"image": engine.image, "script": target.script("build")},
    }
    engine.apply(document)
    assert specs.ended("build")["state"] == "Succeeded"
    (pod,) = specs.pods("build")
    assert "meta.helm.sh/release-name" not in pod["metadata"]["annotations"]


@pytest.mark.real
def test_what_the_schema_cannot_refuse_the_status_says_and_nothing_is_created(
    engine: Engine, specs: JobSpecs, staying: EngineProcess, target: ClusterUnderTest
) -> None:
    engine.spec("build", timout="1h")
    status = specs.ended("build")
    assert (status["state"], status["reason"]) == ("InvalidSpec", "InvalidSpec")
    assert "spec: unknown field 'timout'" in status["message"] or "timout" in status["message"]
    stalled = {"Ready": "False", "Stalled": "True", "Finished": "True", "Failed": "True"}
    assert conditions(status) == stalled
    events = partial(
        specs.api.list, "events", specs.namespace, fields="involvedObject.kind=JobSpec"
    )
    (event,) = specs.api.wait(events, "event on the object")
    assert event["reason"] == "InvalidSpec"
    assert not specs.pods("build")
    specs.api.patch(JOB_SPECS, "build", {"spec": {"timout": None}}, specs.namespace)
    specs.patch("build", script=target.script("build"))
    assert specs.ended("build")["state"] == "Succeeded"


def test_an_invalid_edit_lets_the_run_end_and_then_says_so(
    engine: Engine, specs: JobSpecs, staying: EngineProcess, target: ClusterUnderTest
) -> None:
    engine.spec("build", script=target.script("build", lasts=4))
    pod = specs.running_pod("build")
    specs.patch("build", podPatch={"spec": {"contaners": []}})
    specs.wait_for("build", "InvalidSpec")

    def has_outcome() -> bool:
        status = specs.status("build")
        return bool(status["record"]["attempts"][-1].get("outcome"))

    specs.api.wait(has_outcome, "outcome of the run")
    status = specs.wait_for("build", "InvalidSpec")
    assert status["record"]["state"] == "Succeeded"
    assert [one["metadata"]["uid"] for one in specs.pods("build")] == [pod["metadata"]["uid"]]
    specs.api.patch(JOB_SPECS, "build", {"spec": {"podPatch": None}}, specs.namespace)
    assert specs.wait_for("build", "Succeeded")["attempts"] == status["attempts"]


def test_a_file_keeps_the_name_that_it_had_first(
    engine: Engine, specs: JobSpecs, target: ClusterUnderTest
) -> None:
    files = replace(engine, objects=False)
    script = target.script("build")
    files.spec("build", script=script)
    files.reconcile(ends=0)
    with EngineProcess(engine, "--source", "objects"):
        engine.spec("build", script=script, env={"A": "1"})
        status = specs.ended("build")
    assert (status["state"], status["reason"]) == ("InvalidSpec", "ClaimedBySource")
    assert f"belongs to source '{target.source}' of files" in status["message"]
    assert len(specs.pods("build")) == 1


def test_an_object_keeps_the_name_that_it_had_first(
    engine: Engine, specs: JobSpecs, target: ClusterUnderTest
) -> None:
    script = target.script("build")
    engine.spec("build", script=script)
    engine.reconcile("--source", "objects", ends=0)
    files = replace(engine, objects=False)
    files.spec("build", script=script, env={"A": "1"})
    refused = files.reconcile(ends=2)
    assert "belongs to source 'objects' of objects" in refused.stderr
    assert len(specs.pods("build")) == 1


def _owner(specs: JobSpecs, name: str) -> str:
    """The source of the only pod, if its run is over and its record the only one; else ""."""
    status, pods = specs.status(name), specs.pods(name)
    if len(pods) != 1 or pods[0]["status"].get("phase") != "Succeeded":
        return ""
    has_file = specs.api.find("configmaps", f"{name}.record", specs.namespace) is not None
    is_told = status.get("reason") == "ClaimedBySource"
    expected = {"files": (True, True, False), "objects": (False, False, True)}
    source: str = pods[0]["metadata"]["labels"]["jobs.engine/source"]
    return source if expected[source] == (has_file, is_told, "record" in status) else ""


@pytest.mark.parametrize("env", [{}, {"DOOR": "second"}])
def test_of_a_file_and_an_object_that_come_at_once_one_runs_and_the_other_is_told(
    engine: Engine, specs: JobSpecs, target: ClusterUnderTest, env: dict[str, str]
) -> None:
    files = replace(engine, objects=False)
    names = [f"job-{number}" for number in range(12)]
    scripts = {name: target.script(name) for name in names}
    sources = ("--source", "files"), ("--source", "objects")
    with (
        EngineProcess(files, *sources[0]) as of_files,
        EngineProcess(engine, *sources[1]) as of_objects,
    ):
        for number, name in enumerate(names):
            first, second = (files, engine) if number % 2 else (engine, files)
            first.spec(name, script=scripts[name])
            second.spec(name, script=scripts[name], env=env)
        specs.api.wait(
            lambda: all(_owner(specs, name) for name in names), "one owner and one pod of each job"
        )
        for name in names:
            if _owner(specs, name) == "objects":
                of_files.wait_for_line(f"{name}: job {specs.namespace}/{name} belongs to source")
        assert "internal error" not in of_files.text + of_objects.text


@pytest.mark.only("sandbox")
def test_a_record_that_another_engine_wrote_meanwhile_is_not_overwritten(
    engine: Engine, specs: JobSpecs, sandbox: Sandbox
) -> None:
    """The engine has found no record, and is told of the other one before it says Queued."""
    quota = {"metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}}
    specs.api.create("resourcequotas", quota, specs.namespace)
    slow = sandbox.faults.add(Fault(Latency(2), "create", "pods"))
    with EngineProcess(engine):
        engine.spec("build", script="true")
        specs.api.wait(lambda: sandbox.faults.hits(slow), "create of the pod")
        item = specs.get("build")
        run, client = object_hash(item), connect(str(engine.kubeconfig)).client
        seen, version = job_object(item), item["metadata"]["resourceVersion"]
        record = Record(
            STATUS_RECORDS.key_of(item), "objects", run[0], object=seen, version=version
        )
        done = record.as_completed(*run, "done by another engine", client.now())
        STATUS_RECORDS.write(client, MaskedRecord(done))
        asked = partial(sandbox.requests.where, "create", "pods")
        specs.api.wait(lambda: [one.code for one in asked()] == [403], "refusal of the pod")
        engine.spec("other", script="true")
        specs.wait_for("other", "Queued")
    status = specs.status("build")
    assert (status["state"], status["message"]) == ("Succeeded", "done by another engine")


@pytest.mark.only("sandbox")
@pytest.mark.parametrize("late", ["configmaps", "jobspecs"])
def test_of_two_specs_of_one_name_whose_records_are_written_at_once_one_runs_alone(
    engine: Engine, specs: JobSpecs, target: ClusterUnderTest, sandbox: Sandbox, late: str
) -> None:
    """The record of the `late` one is written after the other one found none of it."""
    files, script = replace(engine, objects=False), target.script("build", lasts=600)
    of_configmaps = late == "configmaps"
    write = ("create", late, "build.record") if of_configmaps else ("update", f"{late}/status")
    sandbox.faults.add(Fault(Latency(3), *write))
    first, second = (files, engine) if of_configmaps else (engine, files)
    with EngineProcess(first, "--source", "one") as loser, EngineProcess(second, "--source", "two"):
        first.spec("build", script=script, env={"DOOR": "first"})
        (made,) = specs.api.wait(lambda: specs.pods("build"), "pod of the first")
        second.spec("build", script=script)
        running = specs.running_pod("build")
        assert running["metadata"]["uid"] != made["metadata"]["uid"]
        loser.wait_for_line("belongs to source 'two'")
        specs.api.wait(lambda: len(specs.pods("build")) == 1, "end of the pod that never ran")
    record = specs.api.find("configmaps", "build.record", specs.namespace)
    status = specs.status("build") if of_configmaps else specs.ended("build")
    assert (record is None) is ("record" in status) is of_configmaps
    assert (status["reason"] == "ClaimedBySource") is not of_configmaps


def test_defaults_of_the_namespace_hold_for_its_objects(
    engine: Engine, specs: JobSpecs, staying: EngineProcess, target: ClusterUnderTest
) -> None:
    kind = {"apiVersion": "jobs.engine/v1alpha1", "kind": "JobDefaults"}
    metadata = {"name": "defaults", "namespace": specs.namespace}
    engine.apply({**kind, "metadata": metadata, "spec": {"env": {"LEVEL": "debug"}}})
    engine.spec("build", script=target.script("build"))
    specs.ended("build")
    (pod,) = specs.pods("build")
    main = next(c for c in pod["spec"]["containers"] if c["name"] == "main")
    assert {"name": "LEVEL", "value": "debug"} in main["env"]


def test_once_runs_what_is_valid_and_reports_what_is_not(
    engine: Engine, specs: JobSpecs, target: ClusterUnderTest
) -> None:
    engine.spec("bad", timout="1h")
    engine.spec("good", script=target.script("good"))
    engine.spec("later", script="true", suspend=True)
    run = engine.reconcile(ends=2)
    assert run.job("good")["state"] == "Succeeded"
    assert f'{specs.namespace}/bad: unknown field "spec.timout" (' in run.stderr
    assert specs.status("bad")["state"] == "InvalidSpec"
    assert specs.status("later")["state"] == "Suspended"
    target.forget_requests()
    engine.reconcile(ends=2)
    assert target.writes() == []


def test_commands_work_on_objects(
    engine: Engine, specs: JobSpecs, staying: EngineProcess, target: ClusterUnderTest
) -> None:
    engine.spec("build", script=target.script("build", lasts=600))
    specs.running_pod("build")
    place = ("-n", engine.namespace)
    assert "build" in engine.run("status", *place, "-o", "wide", ends=0).stdout
    assert "(JobSpec object)" in engine.run("describe", "build", *place, ends=0).stdout
    engine.run("cancel", "build", *place, "--reason", "enough", ends=0)
    status = specs.wait_for("build", "Cancelled")
    assert "enough" in status["message"]
    engine.run("diff", *engine.place, "--source", engine.namespace, ends=0)
    engine.run("rerun", "build", *place, ends=0)
    specs.running_pod("build")
