"""Nothing exists without an owner, and nothing outlives it."""

from typing import Any

import pytest

from tests.support.clusters import ClusterUnderTest
from tests.support.engine import Engine, finish, kill
from tests.support.objects import Objects

pytestmark = pytest.mark.real

DEPENDENTS: dict[str, Any] = {
    "secrets": {"TOKEN": {"value": "anything"}},
    "files": {"a.txt": "a"},
}


def test_secret_and_configmap_are_owned_by_the_pod_from_their_first_appearance(
    engine: Engine, objects: Objects
) -> None:
    engine.spec("owned", script="true", **DEPENDENTS)
    labels = "jobs.engine/job=owned,jobs.engine/component!=record"
    with (
        objects.api.watch("secrets", objects.namespace, labels=labels) as secrets,
        objects.api.watch("configmaps", objects.namespace, labels=labels) as configmaps,
    ):
        engine.reconcile(ends=0)
        pod = objects.pod("owned")["metadata"]
        for recorder in (secrets, configmaps):
            first = recorder.wait_for(lambda event: event.name == pod["name"])
            assert first.type == "ADDED"
            assert first.object["metadata"]["ownerReferences"] == [
                {"apiVersion": "v1", "kind": "Pod", "name": pod["name"], "uid": pod["uid"]}
            ]


def test_every_object_carries_the_engines_labels_and_its_ttl(
    engine: Engine, objects: Objects, target: ClusterUnderTest
) -> None:
    engine.spec("marked", script="true", ttl="3h15m", **DEPENDENTS)
    engine.reconcile(ends=0)
    found = [objects.pod("marked")]
    for kind in ("secrets", "configmaps"):
        labels = "jobs.engine/job=marked,jobs.engine/component!=record"
        found += objects.api.list(kind, objects.namespace, labels=labels)
    assert len(found) == 3
    name = found[0]["metadata"]["name"]
    for item in found:
        metadata = item["metadata"]
        assert metadata["name"] == name
        assert metadata["annotations"]["jobs.engine/ttl"] == "11700"
        assert metadata["labels"]["app.kubernetes.io/managed-by"] == "engine"
        assert metadata["labels"]["jobs.engine/attempt"] == "1"
        assert metadata["labels"]["jobs.engine/source"] == target.source
        assert name == f"marked-{metadata['labels']['jobs.engine/run']}-1"


def test_a_pod_deleted_while_it_runs_ends_the_job_and_takes_its_objects_along(
    engine: Engine, objects: Objects, target: ClusterUnderTest
) -> None:
    engine.spec("gone", script=target.script("gone", lasts=60), **DEPENDENTS)
    process = engine.start()
    pod = objects.wait_until_running("gone")["metadata"]["name"]
    assert len(objects.owned()) == 2
    target.delete_pod(pod, "--grace-period=1")
    finish(process, ends=7)
    _assert_only_the_record_is_left(engine, objects, pod)


def test_a_pod_deleted_after_the_engine_was_killed_ends_the_job_the_same_way(
    engine: Engine, objects: Objects, target: ClusterUnderTest
) -> None:
    engine.spec("gone", script=target.script("gone", lasts=60), **DEPENDENTS)
    process = engine.start()
    pod = objects.wait_until_running("gone")["metadata"]["name"]
    kill(process)
    target.delete_pod(pod, "--grace-period=1")
    engine.reconcile(ends=7)
    _assert_only_the_record_is_left(engine, objects, pod)


def test_a_running_job_is_taken_up_by_the_next_engine_and_not_started_again(
    engine: Engine, objects: Objects, target: ClusterUnderTest
) -> None:
    engine.spec("long", script=target.script("long", lasts=9))
    process = engine.start()
    uid = objects.wait_until_running("long")["metadata"]["uid"]
    kill(process)
    run = engine.reconcile(ends=0)
    assert [a["uid"] for a in run.job("long")["attempts"]] == [uid]


def _assert_only_the_record_is_left(engine: Engine, objects: Objects, pod: str) -> None:
    job = engine.status()["gone"]
    assert (job["state"], job["reason"]) == ("Failed", "PodDeleted")
    assert job["message"] == f'pods "{pod}" not found'
    assert objects.pods() == []
    objects.wait_until_clean()
    again = engine.reconcile(ends=7)
    assert again.job("gone")["changed"] is False
    assert objects.pods() == []
