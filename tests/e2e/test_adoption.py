"""A pod in no record: what never ran is made anew, what runs is adopted or refused by name."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.api import Object
from tests.support.clusters import ClusterUnderTest
from tests.support.engine import Engine, finish, kill
from tests.support.objects import Objects
from tests.support.recorder import Event
from tests.support.webhook import injecting_webhook

SECRETS = {"TOKEN": {"value": "the-deploy-key"}}
EVIL = ["sh", "-c", "sleep 60"]


@pytest.fixture
def injected(objects: Objects, tmp_path: Path) -> Iterator[None]:
    """An injecting webhook and a LimitRange in the namespace."""
    limits = {"type": "Container", "default": {"cpu": "750m"}, "defaultRequest": {"cpu": "10m"}}
    body = {"metadata": {"name": "limits"}, "spec": {"limits": [limits]}}
    objects.api.create("limitranges", body, objects.namespace)
    with injecting_webhook(objects.api, objects.namespace, tmp_path):
        yield


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
    uid, name = forged["metadata"]["uid"], forged["metadata"]["name"]
    with (
        objects.api.watch("secrets", objects.namespace) as secrets,
        objects.api.watch("pods", objects.namespace) as pods,
    ):
        run = engine.reconcile(ends=0)
        pods.wait_for(lambda event: _uid(event) != uid and event.type == "ADDED")
        secrets.wait_for(lambda event: event.name == name)
    (attempt,) = run.job("job")["attempts"]
    assert attempt["uid"] != uid
    states = [event.object for event in pods.events if _uid(event) == uid]
    assert states[-1]["metadata"]["uid"] == uid
    assert all("schedulingGates" in state["spec"] for state in states)
    owners = [
        owner["uid"]
        for event in secrets.events
        if event.name == name
        for owner in event.object["metadata"]["ownerReferences"]
    ]
    assert set(owners) == {attempt["uid"]}


def test_a_running_job_whose_record_somebody_deleted_is_adopted(
    engine: Engine, objects: Objects, target: ClusterUnderTest
) -> None:
    token = {"spec": {"automountServiceAccountToken": True}}
    script = target.script("job", lasts=6)
    engine.spec("job", script=script, secrets=SECRETS, podPatch=token)
    process = engine.start()
    uid = objects.wait_until_running("job")["metadata"]["uid"]
    kill(process)
    forget_record(objects, "job")
    run = engine.reconcile(ends=0)
    assert [attempt["uid"] for attempt in run.job("job")["attempts"]] == [uid]
    assert [pod["metadata"]["uid"] for pod in objects.pods()] == [uid]


def test_a_running_look_alike_is_refused_by_name_and_left_alone(
    engine: Engine, objects: Objects, target: ClusterUnderTest
) -> None:
    engine.spec("job", script=target.script("job", lasts=60), secrets=SECRETS)
    pod = without_needs(look_alike(engine, command=EVIL, image=engine.image))
    forged = objects.api.create("pods", pod, objects.namespace)
    objects.wait_until_running("job")
    run = engine.reconcile(ends=5)
    name = forged["metadata"]["name"]
    words = f"pod {name} has this job's name, is in no record of it, and differs from what its spec"
    assert words in run.stderr
    assert "spec.containers[0].command" in run.stderr
    (left,) = objects.pods()
    assert left["metadata"]["uid"] == forged["metadata"]["uid"]
    assert "deletionTimestamp" not in left["metadata"]
    assert objects.owned() == []


def test_a_pod_with_forged_labels_beside_a_running_job_changes_nothing(
    engine: Engine, objects: Objects, target: ClusterUnderTest
) -> None:
    engine.spec("job", script=target.script("job", lasts=4), secrets=SECRETS)
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


@pytest.mark.only("real")
def test_what_admission_adds_is_no_difference(
    engine: Engine, objects: Objects, target: ClusterUnderTest, injected: None
) -> None:
    """A webhook injects a container with a random annotation, a LimitRange fills in resources."""
    del injected
    engine.spec("job", script=target.script("job", lasts=8), secrets=SECRETS)
    process = engine.start()
    pod = objects.wait_until_running("job")
    assert [c["name"] for c in pod["spec"]["initContainers"]] == ["injected"]
    assert pod["spec"]["containers"][0]["resources"]["limits"]["cpu"] == "750m"
    kill(process)
    forget_record(objects, "job")
    run = engine.reconcile(ends=0)
    (attempt,) = run.job("job")["attempts"]
    assert attempt["uid"] == pod["metadata"]["uid"]


@pytest.mark.only("real")
def test_admission_does_not_make_a_look_alike_the_engines_own(
    engine: Engine, objects: Objects, target: ClusterUnderTest, injected: None
) -> None:
    del injected
    engine.spec("job", script=target.script("job", lasts=60))
    pod = without_needs(look_alike(engine, command=EVIL, image=engine.image))
    objects.api.create("pods", pod, objects.namespace)
    run = engine.reconcile(ends=5)
    assert "differs from what its spec makes in spec.containers[0].command" in run.stderr
