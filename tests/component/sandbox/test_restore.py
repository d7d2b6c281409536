"""Objects brought back as they were stored elsewhere."""

from __future__ import annotations

from engine.sandbox import Sandbox
from tests.support.client import Obj
from tests.support.sandbox_namespace import Namespace, container

UID = "11111111-2222-3333-4444-555555555555"


def stored(node: str) -> Obj:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "old",
            "namespace": "ci",
            "uid": UID,
            "resourceVersion": "7",
            "creationTimestamp": "2020-01-01T00:00:00Z",
        },
        "spec": {"nodeName": node, "restartPolicy": "Never", "containers": [container()]},
        "status": {"phase": "Running"},
    }


def test_a_restored_object_keeps_its_uid_its_times_and_its_status(
    ci: Namespace, sandbox: Sandbox
) -> None:
    pod = stored("another-node")
    sandbox.restore(pod)
    ci.advance(3600)
    found = ci.client.get(ci.path("pods", "old")).body
    assert found["metadata"]["uid"] == UID
    assert found["metadata"]["creationTimestamp"] == "2020-01-01T00:00:00Z"
    assert found["status"] == {"phase": "Running"}
    assert pod == stored("another-node")


def test_a_restored_objects_version_is_of_this_server(ci: Namespace, sandbox: Sandbox) -> None:
    before = int(ci.client.get(ci.path("pods")).body["metadata"]["resourceVersion"])
    sandbox.restore(stored("another-node"))
    found = ci.client.get(ci.path("pods", "old")).body
    assert int(found["metadata"]["resourceVersion"]) > before


def test_a_restored_object_goes_with_its_owner(ci: Namespace, sandbox: Sandbox) -> None:
    sandbox.restore(stored("another-node"))
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "old", "uid": UID}
    metadata = {"name": "owned", "namespace": "ci", "uid": "owned", "ownerReferences": [owner]}
    sandbox.restore({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    ci.advance(1)
    assert sandbox.get("configmaps", "ci", "owned") is not None
    ci.client.delete(ci.path("pods", "old"), {"gracePeriodSeconds": 0})
    ci.advance(1)
    assert sandbox.get("configmaps", "ci", "owned") is None
