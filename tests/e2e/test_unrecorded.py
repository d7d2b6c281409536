"""A pod in no record: one that never ran is made anew, one that runs is refused by name."""

from typing import Any

from tests.support.api import Object
from tests.support.clusters import ClusterUnderTest
from tests.support.engine import Engine, finish, kill
from tests.support.engine_process import EngineProcess
from tests.support.objects import Objects
from tests.support.recorder import Event

SECRETS = {"TOKEN": {"value": "the-deploy-key"}}
EVIL = ["sh", "-c", "sleep 60"]


def look_alike(engine: Engine, **main: Any) -> Object:
    """The pod that the engine would make for its one job, with another main container."""
    run = engine.run("render", str(engine.folder), "-o", "json", ends=0)
    pod: Object = next(item for item in run.result["items"] if item["kind"] == "Pod")
    pod["spec"]["containers"][0].update(main)
    return pod


def without_needs(pod: Object) -> Object:
    """Ready to run at once: neither gated nor in need of a Secret or ConfigMap."""
    for field in ("schedulingGates", "volumes"):
        pod["spec"].pop(field, None)
    for container in pod["spec"]["containers"]:
        container.pop("env", None)
        container.pop("volumeMounts", None)
    return pod


def _uid(event: Event) -> str:
    return str(event.object["metadata"]["uid"])


def forget_record(objects: Objects, job: str) -> None:
    objects.api.delete("configmaps", f"{job}.record", objects.namespace)


def test_a_pre_created_look_alike_gets_no_secret_and_is_not_let_go(
    engine: Engine, objects: Objects, target: ClusterUnderTest
) -> None:
    engine.spec("job", script=target.script("job"), secrets=SECRETS)
    forged = objects.api.create("pods", look_alike(engine, command=EVIL), objects.namespace)
    uid, taken = forged["metadata"]["uid"], forged["metadata"]["name"]
    name = f"{taken.removesuffix('1')}2"  # no number is given twice
    with (
        objects.api.watch("secrets", objects.namespace) as secrets,
        objects.api.watch("pods", objects.namespace) as pods,
    ):
        run = engine.reconcile(ends=0)
        pods.wait_for(lambda event: _uid(event) != uid and event.type == "ADDED")
        secrets.wait_for(lambda event: event.name == name)
    (attempt,) = run.job("job")["attempts"]
    assert (attempt["pod"], attempt["number"]) == (name, 1)
    assert attempt["uid"] != uid
    states = [event.object for event in pods.events if _uid(event) == uid]
    assert states[-1]["metadata"]["uid"] == uid
    assert all("schedulingGates" in state["spec"] for state in states)
    owners = [
        owner["uid"]
        for event in secrets.events
        if event.name in (taken, name)
        for owner in event.object["metadata"]["ownerReferences"]
    ]
    assert set(owners) == {attempt["uid"]}


def test_a_running_job_whose_record_was_deleted_is_refused_until_its_pod_is_removed(
    engine: Engine, objects: Objects, target: ClusterUnderTest
) -> None:
    engine.spec("job", script=target.script("job", lasts=9), secrets=SECRETS)
    process = engine.start()
    pod = objects.wait_until_running("job")["metadata"]
    kill(process)
    forget_record(objects, "job")
    run = engine.reconcile(ends=5)
    assert f"pod {pod['name']} has this job's name and is in no record of it" in run.stderr
    assert f"kubectl delete pod {pod['name']} -n {objects.namespace} removes it" in run.stderr
    assert [left["metadata"]["uid"] for left in objects.pods()] == [pod["uid"]]
    target.delete_pod(pod["name"], "--grace-period=0")
    (attempt,) = engine.reconcile(ends=0).job("job")["attempts"]
    assert attempt["uid"] != pod["uid"]


def test_a_running_look_alike_is_refused_by_name_and_left_alone(
    engine: Engine, objects: Objects, target: ClusterUnderTest
) -> None:
    engine.spec("job", script=target.script("job", lasts=60), secrets=SECRETS)
    pod = without_needs(look_alike(engine, command=EVIL, image=engine.image))
    forged = objects.api.create("pods", pod, objects.namespace)
    objects.wait_until_running("job")
    run = engine.reconcile(ends=5)
    name = forged["metadata"]["name"]
    assert f"pod {name} has this job's name and is in no record of it" in run.stderr
    (left,) = objects.pods()
    assert left["metadata"]["uid"] == forged["metadata"]["uid"]
    assert "deletionTimestamp" not in left["metadata"]
    assert objects.owned() == []


def test_a_pod_with_forged_labels_beside_a_running_job_changes_nothing(
    engine: Engine, objects: Objects, target: ClusterUnderTest
) -> None:
    engine.spec("job", script=target.script("job", lasts=12), secrets=SECRETS)
    pod = without_needs(look_alike(engine, command=EVIL, image=engine.image))
    name = pod["metadata"]["name"] = pod["metadata"]["name"].removesuffix("1") + "7"
    process = engine.start()
    mine = objects.wait_until_running("job")["metadata"]["uid"]
    objects.api.create("pods", pod, objects.namespace)
    run = finish(process, ends=0)
    assert [attempt["uid"] for attempt in run.job("job")["attempts"]] == [mine]
    assert run.stderr.count(f"pod {name} is in no record of this job; it is left alone") == 1
    forged = objects.api.get("pods", name, objects.namespace)
    assert "deletionTimestamp" not in forged["metadata"]
    engine.reconcile(ends=0)
    assert "deletionTimestamp" not in objects.api.get("pods", name, objects.namespace)["metadata"]


def test_a_strangers_pod_in_the_place_of_a_jobs_is_not_pruned_and_its_removal_lets_the_job_run(
    engine: Engine, objects: Objects, target: ClusterUnderTest
) -> None:
    engine.spec("job", script=target.script("job"))
    pod = without_needs(look_alike(engine, command=EVIL, image=engine.image))
    pod["metadata"]["labels"] = {"team": "other"}
    pod["metadata"]["annotations"] = {"cleaner.kubernetes.gitlab.org/ttl": "0"}
    forged = objects.api.create("pods", pod, objects.namespace)
    name = forged["metadata"]["name"]
    run = engine.reconcile(ends=5)
    assert f"kubectl delete pod {name}" in run.stdout
    assert run.result["pruned"] == []
    found = objects.api.get("pods", name, objects.namespace)
    assert "deletionTimestamp" not in found["metadata"]
    with EngineProcess(engine, "--prune-interval", "1s") as staying:
        staying.wait_for_line("trying again")
        objects.api.delete("pods", name, objects.namespace, grace=0)
        staying.wait_for_line(f"{engine.namespace}/job: Succeeded")
