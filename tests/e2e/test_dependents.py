"""Secret and ConfigMap can't be changed; one that is deleted before its pod needs it comes back."""

import pytest

from tests.support.api import ApiError
from tests.support.clusters import ClusterUnderTest
from tests.support.engine import Engine, finish
from tests.support.objects import Objects

pytestmark = pytest.mark.real

SECRETS = {"TOKEN": {"value": "the-right-value"}}
HELD = {"spec": {"schedulingGates": [{"name": "example.com/held"}]}}


def test_what_is_deleted_before_its_pod_starts_is_made_anew_and_the_job_succeeds(
    engine: Engine, objects: Objects, target: ClusterUnderTest
) -> None:
    """Without the ConfigMap the volume can't be mounted, which the pod's status doesn't say."""
    engine.spec("job", script=target.script("job"), secrets=SECRETS, podPatch=HELD)
    process = engine.start()
    objects.api.wait(lambda: objects.pods() and not engine_holds(objects, "job"), "the held pod")
    pod = objects.pod("job")["metadata"]
    for kind in ("secrets", "configmaps"):
        objects.api.delete(kind, pod["name"], objects.namespace)
    objects.api.patch("pods", pod["name"], {"spec": {"schedulingGates": []}}, objects.namespace)
    run = finish(process, ends=0)
    for kind in ("secrets", "configmaps"):
        owners = objects.api.get(kind, pod["name"], objects.namespace)["metadata"]
        assert [owner["uid"] for owner in owners["ownerReferences"]] == [pod["uid"]]
    restored = "was deleted before its pod had started; created again"
    assert f"secret/{objects.namespace}/{pod['name']} {restored}" in run.stderr
    assert f"configmap/{objects.namespace}/{pod['name']} {restored}" in run.stderr
    assert run.stderr.count(restored) == 2
    assert [attempt["uid"] for attempt in run.job("job")["attempts"]] == [pod["uid"]]


def test_a_secret_that_a_container_waits_for_is_made_anew_at_once(
    engine: Engine, objects: Objects, target: ClusterUnderTest
) -> None:
    """While an init container runs, the main one has not read its environment yet."""
    first = {"name": "first", "image": engine.image, "command": ["sleep", "8"]}
    target.script("job", lasts=12, container="first")
    engine.spec("job", script=target.script("job"), secrets=SECRETS, initContainers=[first])
    process = engine.start()
    objects.api.wait(lambda: first_runs(objects), "the init container")
    name = objects.pod("job")["metadata"]["name"]
    objects.api.delete("secrets", name, objects.namespace)
    run = finish(process, ends=0)
    assert run.stderr.count("created again") == 1
    assert "the-right-value" not in run.stderr + run.stdout


def test_what_a_started_pod_owns_is_left_deleted_and_can_not_be_changed(
    engine: Engine, objects: Objects, target: ClusterUnderTest
) -> None:
    engine.spec("job", script=target.script("job", lasts=12), secrets=SECRETS)
    process = engine.start()
    name = objects.wait_until_running("job")["metadata"]["name"]
    for kind, body in (("secrets", {"TOKEN": "d3Jvbmc="}), ("configmaps", {"script": "exit 1"})):
        with pytest.raises(ApiError, match="field is immutable when `immutable` is set"):
            objects.api.patch(kind, name, {"data": body}, objects.namespace)
        objects.api.delete(kind, name, objects.namespace)
    run = finish(process, ends=0)
    assert not objects.owned()
    assert "created again" not in run.stderr


def engine_holds(objects: Objects, job: str) -> bool:
    gates = objects.pod(job)["spec"].get("schedulingGates", [])
    return {"name": "jobs.engine/dependents"} in gates


def first_runs(objects: Objects) -> bool:
    if not objects.pods():
        return False
    statuses = objects.pod("job")["status"].get("initContainerStatuses", [])
    return any("running" in status["state"] for status in statuses)
