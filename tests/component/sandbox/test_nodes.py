"""Several nodes: which images each tells of, and which one a pod comes to."""

from __future__ import annotations

from typing import Any

import pytest

from engine.sandbox import Run, Sandbox
from tests.support.sandbox_namespace import Namespace, container

IMAGE = "registry.example/tool:1"
SECOND = "sandbox-node-2"


@pytest.fixture(autouse=True)
def second(sandbox: Sandbox) -> None:
    sandbox.add_node(SECOND)


def images_of(sandbox: Sandbox, node: str) -> list[str]:
    found = sandbox.get("nodes", "", node)
    assert found is not None
    return [name for image in found["status"]["images"] for name in image["names"]]


def prefers(*requirements: dict[str, Any], weight: int = 10) -> dict[str, Any]:
    preference = {"matchExpressions": [*requirements]}
    terms = [{"weight": weight, "preference": preference}]
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}}


def hosts(operator: str, *values: str) -> dict[str, Any]:
    return {"key": "kubernetes.io/hostname", "operator": operator, "values": [*values]}


def test_a_node_tells_of_the_images_that_it_has(ci: Namespace, sandbox: Sandbox) -> None:
    sandbox.images.cache("alpine:3.20")
    ci.start(nodeSelector={"kubernetes.io/hostname": SECOND})
    ci.advance(5)
    assert images_of(sandbox, "sandbox-node") == ["docker.io/library/alpine:3.20"]
    assert images_of(sandbox, SECOND) == [IMAGE]
    sandbox.images.forget("alpine:3.20")
    assert images_of(sandbox, "sandbox-node") == []


def test_an_image_of_one_node_is_of_no_use_on_another(ci: Namespace, sandbox: Sandbox) -> None:
    sandbox.images.cache(IMAGE)
    sandbox.images.down("registry.example")
    spec = {"containers": [container(imagePullPolicy="IfNotPresent")]}
    ci.start(**spec, nodeSelector={"kubernetes.io/hostname": SECOND})
    ci.start("other", **spec, nodeSelector={"kubernetes.io/hostname": "sandbox-node"})
    ci.advance(5)
    assert (ci.phase(), ci.phase("other")) == ("Pending", "Succeeded")


@pytest.mark.parametrize(
    ("requirements", "node"),
    [
        ([hosts("In", SECOND)], SECOND),
        ([hosts("In", "sandbox-node")], "sandbox-node"),
        ([hosts("NotIn", "sandbox-node")], SECOND),
        ([hosts("In", SECOND), {"key": "zone", "operator": "Exists"}], "sandbox-node"),
        ([hosts("In", SECOND), {"key": "zone", "operator": "DoesNotExist"}], SECOND),
        ([hosts("In", "elsewhere")], "sandbox-node"),
    ],
)
def test_a_pod_comes_to_the_node_that_it_prefers(
    ci: Namespace, requirements: list[dict[str, Any]], node: str
) -> None:
    assert ci.start(affinity=prefers(*requirements)).code == 201
    assert ci.pod()["spec"]["nodeName"] == node


def test_a_pod_takes_another_node_where_the_preferred_one_is_of_no_use(
    ci: Namespace, sandbox: Sandbox
) -> None:
    second = sandbox.get("nodes", "", SECOND)
    assert second is not None
    sandbox.restore({**second, "spec": {"unschedulable": True}})
    ci.start(affinity=prefers(hosts("In", SECOND)))
    assert ci.pod()["spec"]["nodeName"] == "sandbox-node"


def test_pods_without_a_preference_are_spread(ci: Namespace, sandbox: Sandbox) -> None:
    sandbox.node.will(Run(duration=60))
    for name in ("a", "b", "c", "d"):
        ci.start(name)
    nodes = [ci.pod(name)["spec"]["nodeName"] for name in ("a", "b", "c", "d")]
    assert nodes == ["sandbox-node", SECOND] * 2


def test_what_no_node_has_room_for_is_told_of_each(ci: Namespace, sandbox: Sandbox) -> None:
    second = sandbox.get("nodes", "", SECOND)
    assert second is not None
    sandbox.restore({**second, "spec": {"unschedulable": True}})
    ci.start(containers=[container(resources={"requests": {"cpu": "2k"}})])
    told = {c["type"]: c.get("message") for c in ci.pod()["status"]["conditions"]}
    assert told["PodScheduled"] == (
        "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable. no new claims "
        "to deallocate, preemption: 0/2 nodes are available: 2 Preemption is not helpful for "
        "scheduling."
    )


def test_a_pod_of_the_second_node_has_its_address_and_its_log(ci: Namespace) -> None:
    ci.start(affinity=prefers(hosts("In", SECOND)))
    ci.advance(5)
    assert ci.pod()["status"]["hostIP"] == "192.0.2.2"
    assert "nothing was run" in ci.log()
