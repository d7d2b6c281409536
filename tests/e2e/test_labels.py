"""Somebody changes the engine's labels on a pod that runs: the job goes on to its outcome."""

import pytest

from tests.support.clusters import ClusterUnderTest
from tests.support.engine import Engine, finish, kill
from tests.support.objects import Objects

LABELS = (
    "app.kubernetes.io/managed-by",
    "jobs.engine/job",
    "jobs.engine/run",
    "jobs.engine/attempt",
    "jobs.engine/source",
)
SELECTED_BY = "jobs.engine/source"


def label(objects: Objects, pod: str, **labels: str | None) -> None:
    objects.api.patch("pods", pod, {"metadata": {"labels": labels}}, objects.namespace)


@pytest.mark.parametrize("value", [None, "forged"], ids=["removed", "changed"])
@pytest.mark.parametrize("name", LABELS)
def test_a_changed_label_is_reported_once_and_the_job_succeeds(
    engine: Engine, objects: Objects, target: ClusterUnderTest, name: str, value: str | None
) -> None:
    engine.spec("job", script=target.script("job", lasts=9))
    process = engine.start()
    pod = objects.wait_until_running("job")["metadata"]
    label(objects, pod["name"], **{name: value})
    run = finish(process, ends=0)
    assert [attempt["uid"] for attempt in run.job("job")["attempts"]] == [pod["uid"]]
    words = f"labels of pod {pod['name']} were changed ({name}); the engine reads it by its name"
    assert run.stderr.count(words) == 1
    after = objects.api.get("pods", pod["name"], objects.namespace)["metadata"]
    assert after["labels"].get(name) == value
    assert "deletionTimestamp" not in after


def test_a_pod_whose_labels_were_removed_while_no_engine_ran_is_found_by_its_name(
    engine: Engine, objects: Objects, target: ClusterUnderTest
) -> None:
    engine.spec("job", script=target.script("job", lasts=20))
    process = engine.start()
    pod = objects.wait_until_running("job")["metadata"]
    kill(process)
    label(objects, pod["name"], **dict.fromkeys(LABELS))
    run = engine.reconcile(ends=0)
    assert [attempt["uid"] for attempt in run.job("job")["attempts"]] == [pod["uid"]]


def test_a_pod_that_is_deleted_after_its_labels_were_changed_is_told_as_deleted(
    engine: Engine, objects: Objects, target: ClusterUnderTest
) -> None:
    engine.spec("job", script=target.script("job", lasts=60))
    process = engine.start()
    pod = objects.wait_until_running("job")["metadata"]["name"]
    label(objects, pod, **{SELECTED_BY: "nightly"})
    target.delete_pod(pod, "--grace-period=1")
    run = finish(process)
    job = run.job("job")
    assert (job["reason"], job["message"]) == ("PodDeleted", f'pods "{pod}" not found')
