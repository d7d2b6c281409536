"""A pod equals what would be created, but for what admission adds to both."""

import copy
from typing import Any

import pytest

from engine.decide.adoption import first_difference
from engine.transform.prefer_nodes import PREFERRED

MANIFEST: dict[str, Any] = {
    "metadata": {
        "name": "build-1",
        "labels": {"jobs.engine/job": "build", "team": "web"},
        "annotations": {"jobs.engine/ttl": "60", "note": "x"},
    },
    "spec": {
        "containers": [{"name": "main", "image": "alpine"}],
        "schedulingGates": [{"name": "g"}],
    },
}


def made(volume: str = "kube-api-access-abcde") -> dict[str, Any]:
    """What a server makes of the manifest, with what admission injects and fills in."""
    pod = copy.deepcopy(MANIFEST)
    pod["metadata"] |= {"uid": volume, "resourceVersion": "7", "creationTimestamp": "now"}
    pod["metadata"]["annotations"]["injected"] = volume
    pod["spec"]["volumes"] = [{"name": volume, "projected": {"sources": []}}]
    mounts = [{"name": volume, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}]
    pod["spec"]["containers"][0] |= {"volumeMounts": mounts, "resources": {"limits": {"cpu": "1"}}}
    pod["spec"]["containers"].append({"name": "sidecar", "image": "proxy"})
    return pod


def running() -> dict[str, Any]:
    pod = made("kube-api-access-x2y3z")
    pod["metadata"]["labels"]["later"] = "yes"
    pod["metadata"]["annotations"] |= {"jobs.engine/ttl": "9", "network-status": "up"}
    del pod["spec"]["schedulingGates"]
    pod["spec"]["nodeName"] = "node-1"
    pod["spec"]["affinity"] = {"nodeAffinity": {PREFERRED: [{"weight": 100}]}}
    pod["status"] = {"phase": "Running"}
    return pod


def test_what_admission_adds_to_both_and_what_comes_later_is_no_difference() -> None:
    assert first_difference(running(), made(), MANIFEST) == ""


@pytest.mark.parametrize(
    ("path", "value", "place"),
    [
        (("spec", "containers", 0, "image"), "evil", "spec.containers[0].image"),
        (("spec", "containers", 1, "image"), "evil", "spec.containers[1].image"),
        (("spec", "affinity"), {"podAffinity": {"a": 1}}, "spec.affinity.podAffinity"),
        (("spec", "hostPID"), True, "spec.hostPID"),
        (("spec", "volumes", 0, "projected"), {}, "spec.volumes[0].projected.sources"),
        (("spec", "volumes"), [], "spec.volumes"),
        (("spec", "ephemeralContainers"), [{}], "spec.ephemeralContainers"),
        (("metadata", "labels", "jobs.engine/job"), "other", "metadata.labels.jobs.engine/job"),
        (("metadata", "labels"), None, "metadata.labels.jobs.engine/job"),
        (("metadata", "annotations", "note"), "y", "metadata.annotations.note"),
        (("metadata", "finalizers"), ["a/b"], "metadata.finalizers"),
        (("metadata", "ownerReferences"), [{"uid": "u"}], "metadata.ownerReferences"),
    ],
)
def test_every_other_difference_is_named_by_its_place(
    path: tuple[Any, ...], value: object, place: str
) -> None:
    pod: Any = running()
    target = pod
    for step in path[:-1]:
        target = target[step]
    target[path[-1]] = value
    assert first_difference(pod, made(), MANIFEST) == place
