"""Scheduling gates of another controller, as Kueue has them."""

from contextlib import suppress
from typing import Any

from tests.support.api import Api, ApiError, Object

GATE = "example.com/admission"
HELD: dict[str, Any] = {"podPatch": {"spec": {"schedulingGates": [{"name": GATE}]}}}
"""A spec whose pod is born with the gate."""


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
