"""Leases, as leader election uses them, and Events in both of their API groups."""

from __future__ import annotations

from tests.contract.conftest import Target


def leases(target: Target, name: str = "") -> str:
    root = f"/apis/coordination.k8s.io/v1/namespaces/{target.namespace}/leases"
    return f"{root}/{name}" if name else root


def test_a_lease_is_held_by_compare_and_swap(target: Target, name: str) -> None:
    spec = {
        "holderIdentity": "one",
        "leaseDurationSeconds": 15,
        "renewTime": "2024-01-01T00:00:00.000000Z",
    }
    made = target.client.post(leases(target), {"metadata": {"name": name}, "spec": spec})
    assert made.code == 201, made.body
    assert made.body["spec"] == spec
    mine = {**made.body, "spec": {**spec, "renewTime": "2024-01-01T00:00:01.500000Z"}}
    assert target.client.put(leases(target, name), mine).code == 200
    theirs = {**made.body, "spec": {**spec, "holderIdentity": "two"}}
    assert target.client.put(leases(target, name), theirs).code == 409


def test_an_event_is_read_in_both_groups(target: Target, name: str) -> None:
    about = {"kind": "Pod", "namespace": target.namespace, "name": "p", "uid": "1"}
    made = target.client.post(
        target.path("events"),
        {
            "metadata": {"name": name},
            "involvedObject": about,
            "reason": "Tested",
            "message": "it was",
            "type": "Normal",
            "firstTimestamp": "2024-01-01T00:00:00Z",
            "lastTimestamp": "2024-01-01T00:00:00Z",
            "count": 1,
            "source": {"component": "tester"},
        },
    )
    assert made.code == 201, made.body
    found = target.client.get(
        target.path("events"), fieldSelector="involvedObject.name=p,reason=Tested"
    )
    assert name in found.names
