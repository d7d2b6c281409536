"""What only carries the engine's labels is no object of the engine's: it is counted, and stays."""

import json
import time
from typing import Any

import pytest

from engine.sandbox import FOREVER, Fault, Run, Sandbox
from engine.sandbox.faults import ServerError
from tests.support.clusters import NAMESPACE, ClusterUnderTest
from tests.support.engine import Engine, kill
from tests.support.engine_process import EngineProcess
from tests.support.objects import Objects

MANAGED = "app.kubernetes.io/managed-by"
HASH = "12345678"
FINALIZER = "example.com/never"


def labels(source: str, job: str) -> dict[str, str]:
    return {MANAGED: "engine", "jobs.engine/source": source, "jobs.engine/job": job}


def own_source(objects: Objects) -> str:
    return f"source-{objects.namespace[-8:]}"


def strange_pod(objects: Objects, target: ClusterUnderTest, name: str, **metadata: Any) -> str:
    """UID of a running pod that the engine never made."""
    body = {
        "metadata": {"name": name, **metadata},
        "spec": {
            "containers": [
                {"name": "main", "image": target.image, "command": ["sh", "-c", "sleep 600"]}
            ],
            "terminationGracePeriodSeconds": 0,
        },
    }
    return str(objects.api.create("pods", body, objects.namespace)["metadata"]["uid"])


def forge_record(objects: Objects, job: str, source: str, **data: Any) -> None:
    said = {"source": source, "specHash": "a" * 64, "state": "Succeeded", "reason": "Succeeded"}
    text = json.dumps({**said, "completed": True, **data})
    body = {
        "metadata": {
            "name": f"{job}.record",
            "labels": {**labels(source, job), "jobs.engine/component": "record"},
        },
        "data": {"record.json": text},
    }
    objects.api.create("configmaps", body, objects.namespace)


def is_untouched(objects: Objects, kind: str, name: str) -> bool:
    found = objects.api.find(kind, name, objects.namespace)
    return found is not None and "deletionTimestamp" not in found["metadata"]


def test_labels_and_a_ttl_on_foreign_pods_do_not_make_reconcile_delete_them(
    engine: Engine, objects: Objects, target: ClusterUnderTest
) -> None:
    source = own_source(objects)
    marks = {"labels": labels(source, "db"), "annotations": {"jobs.engine/ttl": "0"}}
    for name in ("database-0", f"db-{HASH}-1"):
        strange_pod(objects, target, name, **marks)
    engine.spec("mine", script="true")
    _let_age()
    run = engine.reconcile("--source", source, ends=0)
    assert run.result["pruned"] == []
    assert "labelled, not ours: left" in run.stderr
    assert all(is_untouched(objects, "pods", name) for name in ("database-0", f"db-{HASH}-1"))
    with EngineProcess(engine, "--source", source, "--prune-interval", "0.5s") as staying:
        staying.wait_for_line("labelled, not ours: left", within=60)
    assert all(is_untouched(objects, "pods", name) for name in ("database-0", f"db-{HASH}-1"))


def test_labels_and_a_forged_record_do_not_make_prune_remove_foreign_objects(
    engine: Engine, objects: Objects, target: ClusterUnderTest
) -> None:
    source = own_source(objects)
    marks = {"labels": labels(source, "ghost")}
    strange_pod(objects, target, "database-0", **marks)
    for kind, name in (("secrets", "prod-tls"), ("configmaps", "app-config")):
        objects.api.create(kind, {"metadata": {"name": name, **marks}}, objects.namespace)
    forge_record(objects, "ghost", source)
    engine.spec("mine", script="true")
    run = engine.reconcile("--source", source, "--prune", ends=0)
    assert "3 objects are labelled, not ours: left" in run.stderr
    assert [entry["name"] for entry in run.result["pruned"]] == ["ghost.record"]
    for kind, name in (
        ("pods", "database-0"), ("secrets", "prod-tls"), ("configmaps", "app-config"),
    ):  # fmt: skip
        assert is_untouched(objects, kind, name)


def test_a_forged_record_that_names_a_foreign_pod_proves_nothing(
    engine: Engine, objects: Objects, target: ClusterUnderTest
) -> None:
    source = own_source(objects)
    uid = strange_pod(objects, target, "database-0", labels=labels(source, "ghost"))
    pod = f"ghost-{'a' * 8}-1"
    attempt = {"number": 1, "pod": pod, "uid": uid, "outcome": "Succeeded"}
    forge_record(objects, "ghost", source, attempts=[attempt])
    engine.spec("mine", script="true")
    engine.reconcile("--source", source, "--prune", ends=0)
    assert is_untouched(objects, "pods", "database-0")


@pytest.mark.real
def test_a_running_pod_without_a_record_is_neither_pruned_nor_run_again(
    engine: Engine, objects: Objects, target: ClusterUnderTest
) -> None:
    engine.spec("job", script=target.script("job", lasts=300))
    process = engine.start()
    pod = objects.wait_until_running("job")["metadata"]
    kill(process)
    _expire(objects, pod["name"])
    objects.api.delete("configmaps", "job.record", objects.namespace)
    _let_age()
    run = engine.run("prune", "-n", objects.namespace, "-o", "json", ends=0)
    (entry,) = [one for one in run.result["pruned"] if one["kind"] == "Pod"]
    assert entry["action"] == "invalid"
    assert f"kubectl delete pod {pod['name']} -n {objects.namespace} removes it" in entry["reason"]
    engine.reconcile(ends=5)
    assert [left["metadata"]["uid"] for left in objects.pods()] == [pod["uid"]]
    assert is_untouched(objects, "pods", pod["name"])


def test_a_removed_jobs_pod_goes_by_name_and_uid_though_its_labels_were_changed(
    engine: Engine, objects: Objects, target: ClusterUnderTest
) -> None:
    source = ("--source", own_source(objects))
    engine.spec("mine", script="true")
    engine.spec("job", script=target.script("job", lasts=300))
    engine.reconcile("--wait", "applied", *source, ends=0)
    name = objects.wait_until_running("job")["metadata"]["name"]
    patch = {"metadata": {"labels": {"jobs.engine/job": "other", MANAGED: None}}}
    objects.api.patch("pods", name, patch, objects.namespace)
    (engine.folder / "job.yaml").unlink()
    engine.reconcile("--prune", *source, ends=0)
    objects.api.wait(
        lambda: objects.api.find("pods", name, objects.namespace) is None, "end of the pod"
    )
    assert objects.api.find("configmaps", "job.record", objects.namespace) is None


@pytest.mark.only("sandbox")
def test_the_outcome_of_a_pod_without_labels_is_recorded_before_it_is_pruned(
    engine: Engine, objects: Objects, sandbox: Sandbox
) -> None:
    engine.spec("job", script="true", retry={"max": 2, "on": ["PodDeleted"]})
    engine.reconcile("--wait", "applied", ends=0)
    name = objects.wait_until_over("job")["metadata"]["name"]
    patch = {"metadata": {"labels": {MANAGED: None, "jobs.engine/job": None}}}
    objects.api.patch("pods", name, patch, NAMESPACE)
    sandbox.clock.advance(86_400)
    engine.run("prune", "-n", NAMESPACE, ends=0)
    assert objects.api.find("pods", name, NAMESPACE) is None
    assert engine.status()["job"]["state"] == "Succeeded"
    assert engine.reconcile(ends=0).job("job")["changed"] is False


def test_a_cancel_whose_delete_failed_is_finished_by_the_next_cancel(
    engine: Engine, objects: Objects, target: ClusterUnderTest
) -> None:
    place = objects.namespace
    engine.spec("long", script=target.script("long", lasts=300))
    for again in (("long",), ("--all",)):
        engine.reconcile("--wait", "applied", ends=0)
        name = objects.wait_until_running("long")["metadata"]["name"]
        _cancel_in_record_alone(objects, "long")
        said = engine.run("cancel", *again, "-n", place, ends=0)
        assert said.stdout == f"{place}/long: cancelled; pod {name} deleted\n"
        objects.api.wait(lambda: objects.pods() == [], "end of the pod")
        over = engine.run("cancel", "long", "-n", place, ends=0)
        assert "is already over: Cancelled" in over.stdout
        assert engine.run("cancel", "--all", "-n", place, ends=0).stdout == ""
        engine.run("rerun", "long", "-n", place, ends=0)


@pytest.mark.only("sandbox")
def test_a_cancel_whose_delete_failed_is_finished_by_the_next_reconcile(
    engine: Engine, objects: Objects, sandbox: Sandbox
) -> None:
    sandbox.node.will(Run(duration=FOREVER), container="main")
    engine.spec("long", script="sleep 600")
    engine.reconcile("--wait", "applied", ends=0)
    objects.wait_until_running("long")
    sandbox.faults.add(Fault(ServerError(500, "no"), verb="delete", resource="pods", times=1))
    engine.run("cancel", "long", "-n", NAMESPACE, ends=6)
    assert len(objects.pods()) == 1
    engine.reconcile(ends=1)
    objects.api.wait(lambda: objects.pods() == [], "end of the pod")


@pytest.mark.real
def test_what_a_finalizer_holds_is_named_at_once_and_keeps_no_other_removal_waiting(
    engine: Engine, objects: Objects
) -> None:
    source = ("--source", own_source(objects))
    engine.spec("mine", script="true")
    engine.spec("held", script="true")
    engine.spec("gone", script="true")
    engine.reconcile(*source, ends=0)
    name = objects.pod("held")["metadata"]["name"]
    place = objects.namespace
    objects.api.patch("pods", name, {"metadata": {"finalizers": [FINALIZER]}}, place)
    try:
        objects.api.delete("pods", name, place, grace=0)
        for job in ("held", "gone"):
            (engine.folder / f"{job}.yaml").unlink()
        run = engine.reconcile("--prune", *source, ends=1)
        reasons = {entry["name"]: entry["reason"] for entry in run.result["pruned"]}
        assert reasons[name].endswith(f"waits for finalizer {FINALIZER}")
        assert "is still there" not in run.stderr
        assert objects.api.find("configmaps", "gone.record", place) is None
        assert objects.api.find("configmaps", "held.record", place) is not None
    finally:
        objects.api.patch("pods", name, {"metadata": {"finalizers": None}}, place)


def _cancel_in_record_alone(objects: Objects, job: str) -> None:
    """What `engine cancel` has written before its delete fails."""
    found = objects.api.get("configmaps", f"{job}.record", objects.namespace)
    data = json.loads(found["data"]["record.json"])
    data |= {"state": "Cancelled", "reason": "Cancelled", "message": "cancelled by a test"}
    data["attempts"][-1]["outcome"] = "Cancelled"
    text = {"data": {"record.json": json.dumps(data)}}
    objects.api.patch("configmaps", f"{job}.record", text, objects.namespace)


def _expire(objects: Objects, name: str) -> None:
    patch = {"metadata": {"annotations": {"jobs.engine/ttl": "0"}}}
    objects.api.patch("pods", name, patch, objects.namespace)


def _let_age() -> None:
    """Creation times are whole seconds, and a TTL has to be over, not just up."""
    time.sleep(2.1)
