"""Scheduling gates of another controller, as Kueue has them."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from tests.support.api import Api, ApiError, Object

GATE = "example.com/admission"
HELD: dict[str, Any] = {"podPatch": {"spec": {"schedulingGates": [{"name": GATE}]}}}
"""A spec whose pod is born with the gate."""
FINALIZER = "example.com/managed"


def is_held(pod: Object) -> bool:
    return {"name": GATE} in (pod["spec"].get("schedulingGates") or ())


def let_go(api: Api, pod: Object) -> None:
    """As the gate's owner does, once there is room; gates of others stay.

    Nothing is done where the pod, or its gates, have changed meanwhile.
    """
    place = f"/spec/schedulingGates/{pod['spec']['schedulingGates'].index({'name': GATE})}"
    patch = [
        {"op": "test", "path": "/metadata/uid", "value": pod["metadata"]["uid"]},
        {"op": "test", "path": place, "value": {"name": GATE}},
        {"op": "remove", "path": place},
    ]
    name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
    with suppress(ApiError):
        api.patch("pods", name, patch, namespace, kind="json")


def hold(api: Api, pod: Object) -> None:
    """With a finalizer, as the gate's owner does where it has to learn of the pod's end."""
    found = pod["metadata"]
    api.patch("pods", found["name"], {"metadata": {"finalizers": [FINALIZER]}}, found["namespace"])


@contextmanager
def letting_go_of_deleted(api: Api, namespace: str) -> Iterator[None]:
    """While it lasts, pods that are being deleted lose their finalizers, soon but not at once."""
    over = threading.Event()

    def let_go_of_all() -> None:
        while not over.wait(0.2):
            for pod in api.list("pods", namespace):
                found = pod["metadata"]
                if "deletionTimestamp" in found and found.get("finalizers"):
                    with suppress(ApiError):
                        api.patch(
                            "pods", found["name"], {"metadata": {"finalizers": None}}, namespace
                        )

    thread = threading.Thread(target=let_go_of_all)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def preempt(api: Api, pod: Object) -> str:
    """As Kueue does: a condition first, then the deletion. Returns the condition's message."""
    name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
    condition = {
        "type": "TerminationTarget",
        "status": "True",
        "reason": "WorkloadEvicted",
        "message": "Preempted to accommodate a workload (UID: 1) due to prioritization",
        "lastTransitionTime": "2026-01-01T12:00:00Z",
    }
    path = f"/api/v1/namespaces/{namespace}/pods/{name}/status"
    body = {"status": {"conditions": [condition]}}
    kind = "application/strategic-merge-patch+json"
    assert api.client.call("PATCH", path, body, content_type=kind).code == 200
    api.delete("pods", name, namespace)
    return condition["message"]
