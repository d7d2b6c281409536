"""The fixtures: that the cluster does what the engine's tests rely on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.cluster.node import has_booted
from tests.support.api import Api, Object

if TYPE_CHECKING:
    from tests.cluster.cluster import Cluster
    from tests.cluster.images import Images


def pod(name: str, image: str, script: str = "true", **spec: object) -> Object:
    main = {"name": "main", "image": image, "command": ["sh", "-c", script]}
    policy = spec.pop("imagePullPolicy", None)
    return {
        "metadata": {"name": name},
        "spec": {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 0,
            "containers": [{**main, **({"imagePullPolicy": policy} if policy else {})}],
            **spec,
        },
    }


def ended(api: Api, namespace: str, name: str) -> Object:
    def final() -> Object | None:
        found = api.get("pods", name, namespace)
        return found if found["status"]["phase"] in ("Succeeded", "Failed") else None

    return api.wait(final, f"end of pod {name}")


@pytest.mark.cluster
def test_the_server_says_its_version(cluster: Cluster, api: Api) -> None:
    answer = api.client.call("GET", "/version").body

    assert cluster.version == (int(answer["major"]), int(answer["minor"].rstrip("+")))


@pytest.mark.node
@pytest.mark.registry
def test_security_settings_reach_the_container(api: Api, namespace: str, images: Images) -> None:
    wanted = pod(
        "strict",
        images.busybox,
        "id -u; id -G; grep -E '^(Seccomp|NoNewPrivs):' /proc/self/status | tr -d '\\t'",
        securityContext={
            "runAsUser": 1000,
            "runAsGroup": 1001,
            "fsGroup": 2000,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    )
    wanted["spec"]["containers"][0]["securityContext"] = {"allowPrivilegeEscalation": False}
    api.create("pods", wanted, namespace)

    assert ended(api, namespace, "strict")["status"]["phase"] == "Succeeded"
    lines = api.logs(namespace, "strict").splitlines()
    assert lines == ["1000", "1001 2000", "NoNewPrivs:1", "Seccomp:2"]


@pytest.mark.node
@pytest.mark.registry
def test_a_pod_reaches_the_api_server_at_the_in_cluster_address_with_its_own_token(
    cluster: Cluster, api: Api, namespace: str, images: Images
) -> None:
    assert cluster.kubectl is not None
    image = images.build(programs=[cluster.kubectl])
    asking = "kubectl auth whoami --output=jsonpath={.status.userInfo.username}"
    api.create("pods", pod("inside", image, asking), namespace)

    assert ended(api, namespace, "inside")["status"]["phase"] == "Succeeded"
    assert api.logs(namespace, "inside") == f"system:serviceaccount:{namespace}:default"


@pytest.mark.node
def test_there_is_one_node_unless_another_is_asked_for(cluster: Cluster, api: Api) -> None:
    names = [node["metadata"]["name"] for node in api.list("nodes")]

    assert names == [node.name for node in cluster.nodes]


@pytest.mark.node
def test_a_node_is_ready_for_its_kubelet_once_its_last_life_has_booted(cluster: Cluster) -> None:
    log = cluster.nodes[0].containerd.log.read_text(errors="replace")
    life = log[log.rindex('msg="starting containerd"') :]
    opened = life.index("msg=serving... address=")

    assert has_booted(log)
    assert not has_booted(life[: life.index("\n", opened)])
    assert not has_booted(log + life.partition("\n")[0])
