"""The fixtures: that the cluster does what the engine's tests rely on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.api import Api, ApiError, Object

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cluster.cluster import Cluster
    from tests.cluster.images import Images
    from tests.cluster.node import Node
    from tests.cluster.registry import Registry


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


def waiting(api: Api, namespace: str, name: str, reason: str) -> str:
    """The message with which the pod's container waits for this reason."""

    def message() -> str | None:
        status = api.get("pods", name, namespace)["status"]
        states = [one["state"] for one in status.get("containerStatuses", [])]
        told = [state["waiting"] for state in states if "waiting" in state]
        return next((str(one.get("message")) for one in told if one["reason"] == reason), None)

    return api.wait(message, f"{reason} of pod {name}")


@pytest.mark.cluster
def test_the_server_says_its_version(cluster: Cluster, api: Api) -> None:
    answer = api.client.call("GET", "/version").body

    assert cluster.version == (int(answer["major"]), int(answer["minor"].rstrip("+")))


@pytest.mark.node
@pytest.mark.registry
def test_a_pod_runs_and_its_log_is_read_back(api: Api, namespace: str, images: Images) -> None:
    api.create("pods", pod("hello", images.busybox, "echo 'Grüße aus dem Pod'"), namespace)

    assert ended(api, namespace, "hello")["status"]["phase"] == "Succeeded"
    assert api.logs(namespace, "hello", "main") == "Grüße aus dem Pod\n"


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
def test_an_image_that_was_dropped_fails_with_the_registrys_words(
    api: Api, namespace: str, images: Images
) -> None:
    ref = images.build()
    images.drop_from_registry(ref)
    api.create("pods", pod("gone", ref), namespace)

    assert f"{ref}: not found" in waiting(api, namespace, "gone", "ErrImagePull")


@pytest.mark.node
@pytest.mark.registry
def test_an_image_only_the_node_has_runs_if_not_present_and_fails_always(
    api: Api, namespace: str, images: Images
) -> None:
    ref = images.build()
    images.pull_to_node(ref)
    images.drop_from_registry(ref)
    for name, policy in (("kept", "IfNotPresent"), ("fresh", "Always")):
        api.create("pods", pod(name, ref, imagePullPolicy=policy), namespace)

    assert ended(api, namespace, "kept")["status"]["phase"] == "Succeeded"
    assert "not found" in waiting(api, namespace, "fresh", "ErrImagePull")


@pytest.mark.node
@pytest.mark.registry
def test_an_image_the_node_forgot_is_never_present(
    api: Api, namespace: str, images: Images
) -> None:
    ref = images.build()
    images.pull_to_node(ref)
    images.drop_from_node(ref)
    api.create("pods", pod("never", ref, imagePullPolicy="Never"), namespace)

    waiting(api, namespace, "never", "ErrImageNeverPull")
    assert not images.on_node(ref)


@pytest.mark.node
@pytest.mark.registry
@pytest.mark.alone
def test_a_stopped_registry_refuses_connections_until_it_is_started(
    api: Api, namespace: str, images: Images, registry: Registry
) -> None:
    ref = images.build()
    registry.stop()
    api.create("pods", pod("refused", ref), namespace)
    assert "connection refused" in waiting(api, namespace, "refused", "ErrImagePull")

    registry.start()
    api.create("pods", pod("served", ref), namespace)
    assert ended(api, namespace, "served")["status"]["phase"] == "Succeeded"


@pytest.mark.node
@pytest.mark.registry
def test_the_private_registry_serves_those_with_its_password(
    api: Api, namespace: str, images: Images, private_registry: Registry
) -> None:
    ref = images.build(registry="private")
    api.create("pods", pod("stranger", ref), namespace)
    secret = {
        "metadata": {"name": "account"},
        "type": "kubernetes.io/dockerconfigjson",
        "stringData": {".dockerconfigjson": private_registry.docker_config()},
    }
    api.create("secrets", secret, namespace)
    named = pod("known", ref, imagePullSecrets=[{"name": "account"}])
    api.create("pods", named, namespace)

    assert "no basic auth credentials" in waiting(api, namespace, "stranger", "ErrImagePull")
    assert ended(api, namespace, "known")["status"]["phase"] == "Succeeded"


@pytest.mark.node
@pytest.mark.registry
def test_a_quota_of_no_pods_refuses_with_its_name(
    api: Api, namespace: str, images: Images, quota: Callable[..., Object]
) -> None:
    quota(namespace, {"pods": 0})

    with pytest.raises(ApiError) as refusal:
        api.create("pods", pod("one", images.busybox), namespace)

    assert refusal.value.status == 403
    assert "exceeded quota: q, requested: pods=1, used: pods=0" in refusal.value.message


@pytest.mark.node
@pytest.mark.registry
def test_a_quota_with_a_scope_counts_only_pods_in_it(
    api: Api, namespace: str, images: Images, quota: Callable[..., Object]
) -> None:
    quota(namespace, {"pods": 0}, scopes=["Terminating"])
    api.create("pods", pod("endless", images.busybox), namespace)

    with pytest.raises(ApiError, match="exceeded quota: q"):
        api.create("pods", pod("bound", images.busybox, activeDeadlineSeconds=60), namespace)


@pytest.mark.node
@pytest.mark.registry
def test_an_owned_configmap_is_collected_after_its_pod(
    api: Api, namespace: str, images: Images
) -> None:
    owner = api.create("pods", pod("owner", images.busybox, "sleep 60"), namespace)
    reference = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": "owner",
        "uid": owner["metadata"]["uid"],
    }
    owned = {"metadata": {"name": "owned", "ownerReferences": [reference]}}
    with api.watch("configmaps", namespace) as events:
        api.create("configmaps", owned, namespace)
        api.delete("pods", "owner", namespace, grace=0, uid=owner["metadata"]["uid"])

        events.wait_for(lambda event: event.type == "DELETED" and event.name == "owned")
    assert [event.type for event in events.of("owned")] == ["ADDED", "DELETED"]


@pytest.mark.cluster
def test_a_user_without_roles_is_forbidden(cluster: Cluster, namespace: str) -> None:
    limited = Api.from_kubeconfig(cluster.kubeconfig_for("limited-user"))

    with pytest.raises(ApiError) as refusal:
        limited.list("pods", namespace)

    assert refusal.value.status == 403
    assert 'User "limited-user" cannot list resource "pods"' in refusal.value.message


@pytest.mark.cluster
def test_every_request_is_in_the_audit_log(cluster: Cluster, api: Api, namespace: str) -> None:
    agent = f"audited-{namespace}"
    Api.from_kubeconfig(cluster.kubeconfig, user_agent=agent).list("pods", namespace)

    (entry,) = api.wait(lambda: cluster.audit_entries(agent), "entry in the audit log")
    assert (entry["verb"], entry["user"]["username"]) == ("list", "admin")
    assert entry["objectRef"]["resource"] == "pods"
    assert entry["responseStatus"]["code"] == 200


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
@pytest.mark.registry
def test_a_second_node_runs_pods_and_keeps_images_of_its_own(
    api: Api, namespace: str, images: Images, second_node: Node
) -> None:
    ref = images.build()
    images.pull_to_node(ref)
    images.drop_from_registry(ref)
    for node in ("node-1", second_node.name):
        placed = pod(f"on-{node}", ref, imagePullPolicy="IfNotPresent")
        placed["spec"]["nodeSelector"] = {"kubernetes.io/hostname": node}
        api.create("pods", placed, namespace)

    assert ended(api, namespace, "on-node-1")["spec"]["nodeName"] == "node-1"
    assert "not found" in waiting(api, namespace, f"on-{second_node.name}", "ErrImagePull")


@pytest.mark.node
def test_there_is_one_node_unless_another_is_asked_for(cluster: Cluster, api: Api) -> None:
    names = [node["metadata"]["name"] for node in api.list("nodes")]

    assert names == [node.name for node in cluster.nodes]
