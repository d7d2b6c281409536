"""Somebody changes the engine's labels on a pod that runs: the job goes on to its outcome."""

import pytest

from engine.sandbox import Fault, Refuse, Sandbox
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
def test_a_changed_label_is_put_back_and_the_job_succeeds(
    engine: Engine, objects: Objects, target: ClusterUnderTest, name: str, value: str | None
) -> None:
    engine.spec("job", script=target.script("job", lasts=3))
    process = engine.start()
    pod = objects.wait_until_running("job")["metadata"]
    label(objects, pod["name"], **{name: value})
    run = finish(process, ends=0)
    assert [attempt["uid"] for attempt in run.job("job")["attempts"]] == [pod["uid"]]
    assert run.stderr.count(f"labels of pod {pod['name']} were changed ({name}); put back") == 1
    after = objects.api.get("pods", pod["name"], objects.namespace)["metadata"]
    assert after["labels"] == pod["labels"]
    assert "deletionTimestamp" not in after


def test_labels_that_were_changed_while_no_engine_ran_are_put_back(
    engine: Engine, objects: Objects, target: ClusterUnderTest
) -> None:
    engine.spec("job", script=target.script("job", lasts=20))
    process = engine.start()
    pod = objects.wait_until_running("job")["metadata"]
    kill(process)
    label(objects, pod["name"], **dict.fromkeys(LABELS))
    run = engine.reconcile(ends=0)
    assert [attempt["uid"] for attempt in run.job("job")["attempts"]] == [pod["uid"]]
    (left,) = objects.pods()
    assert left["metadata"]["labels"] == pod["labels"]


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


@pytest.mark.only("sandbox")
def test_where_labels_can_not_be_put_back_the_job_is_seen_through_all_the_same(
    engine: Engine, objects: Objects, target: ClusterUnderTest, sandbox: Sandbox
) -> None:
    engine.spec("job", script=target.script("job", lasts=3))
    process = engine.start()
    pod = objects.wait_until_running("job")["metadata"]["name"]
    words = 'pods "x" is forbidden: User "engine" cannot patch resource "pods" in API group ""'
    sandbox.faults.add(Fault(Refuse(403, "Forbidden", words), verb="patch", times=None, skip=1))
    label(objects, pod, **{SELECTED_BY: None})
    run = finish(process, ends=0)
    line = f"labels of pod {pod} were changed ({SELECTED_BY}); can't be put back, the pod is polled"
    assert run.stderr.count(f"{line}: {words}") == 1
