"""Pods: what the server fills in, what it refuses, and what may still change."""

from __future__ import annotations

import re

import pytest

from tests.contract.conftest import Target
from tests.contract.objects import pod
from tests.support.client import JSON_PATCH, MERGE, STRATEGIC, Obj, eventually


def container(**more: object) -> list[Obj]:
    return [{"name": "main", "image": "registry.invalid/tool:1", **more}]


def test_a_pod_is_filled_with_defaults(target: Target, name: str) -> None:
    made = target.client.post(target.path("pods"), pod(name))
    spec = made.body["spec"]
    assert spec["dnsPolicy"] == "ClusterFirst"
    assert spec["terminationGracePeriodSeconds"] == 30
    assert spec["schedulerName"] == "default-scheduler"
    assert spec["enableServiceLinks"] is True
    assert spec["securityContext"] == {}
    assert spec["priority"] == 0
    assert spec["preemptionPolicy"] == "PreemptLowerPriority"
    assert {(t["key"], t["effect"], t["tolerationSeconds"]) for t in spec["tolerations"]} == {
        ("node.kubernetes.io/not-ready", "NoExecute", 300),
        ("node.kubernetes.io/unreachable", "NoExecute", 300),
    }
    (main,) = spec["containers"]
    assert {key: value for key, value in main.items() if key != "volumeMounts"} == {
        "name": "main",
        "image": "registry.invalid/tool:1",
        "imagePullPolicy": "IfNotPresent",
        "resources": {},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
    }
    assert made.body["status"] == {"phase": "Pending", "qosClass": "BestEffort"}


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("tool", "Always"),
        ("tool:latest", "Always"),
        ("tool:1", "IfNotPresent"),
        ("host:5000/tool", "Always"),
        ("tool@sha256:" + "0" * 64, "IfNotPresent"),
    ],
)
def test_the_pull_policy_follows_the_tag(
    target: Target, name: str, image: str, policy: str
) -> None:
    body = pod(name, containers=container(image=image))
    made = target.client.post(target.path("pods"), body, dryRun="All")
    assert made.body["spec"]["containers"][0]["imagePullPolicy"] == policy


@pytest.mark.parametrize(
    ("resources", "qos"),
    [
        ({}, "BestEffort"),
        ({"requests": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed"),
        ({"limits": {"memory": "1Gi"}}, "Burstable"),
    ],
)
def test_the_quality_of_service(target: Target, name: str, resources: Obj, qos: str) -> None:
    body = pod(name, containers=container(resources=resources))
    made = target.client.post(target.path("pods"), body, dryRun="All")
    assert made.body["status"]["qosClass"] == qos


def test_requests_default_to_limits_and_quantities_are_made_canonical(
    target: Target, name: str
) -> None:
    resources = {"limits": {"cpu": "0.5", "memory": "1024Mi"}, "requests": {"cpu": "100m"}}
    body = pod(name, containers=container(resources=resources))
    made = target.client.post(target.path("pods"), body, dryRun="All")
    assert made.body["spec"]["containers"][0]["resources"] == {
        "limits": {"cpu": "500m", "memory": "1Gi"},
        "requests": {"cpu": "100m", "memory": "1Gi"},
    }


def test_volumes_and_ports_get_their_defaults(target: Target, name: str) -> None:
    body = pod(
        name,
        volumes=[
            {"name": "a", "configMap": {"name": "x"}},
            {"name": "b", "secret": {"secretName": "x"}},
            {"name": "c", "emptyDir": {}},
        ],
        containers=container(
            ports=[{"containerPort": 80}],
            env=[{"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
            volumeMounts=[{"name": "a", "mountPath": "/a", "readOnly": False}],
        ),
    )
    made = target.client.post(target.path("pods"), body, dryRun="All")
    spec = made.body["spec"]
    assert spec["volumes"][0]["configMap"] == {"name": "x", "defaultMode": 420}
    assert spec["volumes"][1]["secret"] == {"secretName": "x", "defaultMode": 420}
    assert spec["volumes"][2] == {"name": "c", "emptyDir": {}}
    main = spec["containers"][0]
    assert main["ports"] == [{"containerPort": 80, "protocol": "TCP"}]
    assert main["env"][0]["valueFrom"]["fieldRef"]["apiVersion"] == "v1"
    assert main["volumeMounts"][0] == {"name": "a", "mountPath": "/a"}


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"containers": []}, "spec.containers: Required value"),
        ({"containers": [{"name": "main"}]}, "spec.containers[0].image: Required value"),
        ({"containers": [{"image": "x"}]}, "spec.containers[0].name: Required value"),
        (
            {"containers": [*container(), *container()]},
            'spec.containers[1].name: Duplicate value: "main"',
        ),
        (
            {"containers": container(imagePullPolicy="Sometimes")},
            (
                'spec.containers[0].imagePullPolicy: Unsupported value: "Sometimes": supported '
                'values: "Always", "IfNotPresent", "Never"'
            ),
        ),
        (
            {"restartPolicy": "Perhaps"},
            (
                'spec.restartPolicy: Unsupported value: "Perhaps": supported values: "Always", '
                '"OnFailure", "Never"'
            ),
        ),
        (
            {"activeDeadlineSeconds": 0},
            (
                "spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, "
                "inclusive"
            ),
        ),
        (
            {"containers": container(volumeMounts=[{"name": "no", "mountPath": "/x"}])},
            'spec.containers[0].volumeMounts[0].name: Not found: "no"',
        ),
        (
            {"volumes": [{"name": "v", "emptyDir": {}}, {"name": "v", "emptyDir": {}}]},
            'spec.volumes[1].name: Duplicate value: "v"',
        ),
        (
            {"containers": container(env=[{"name": ""}])},
            "spec.containers[0].env[0].name: Required value",
        ),
        (
            {"containers": container(resources={"requests": {"cpu": "2"}, "limits": {"cpu": "1"}})},
            (
                'spec.containers[0].resources.requests: Invalid value: "2": must be less than or '
                "equal to cpu limit"
            ),
        ),
    ],
)
def test_an_invalid_pod_is_refused(target: Target, name: str, spec: Obj, words: str) -> None:
    made = target.client.post(target.path("pods"), pod(name, **spec))
    assert (made.code, made.reason) == (422, "Invalid")
    assert made.message.startswith(f'Pod "{name}" is invalid: ')
    assert words in made.message


def test_several_faults_are_told_at_once(target: Target, name: str) -> None:
    made = target.client.post(
        target.path("pods"), pod(name, activeDeadlineSeconds=0, restartPolicy="Perhaps")
    )
    assert len(made.body["details"]["causes"]) == 2
    assert made.message.startswith(f'Pod "{name}" is invalid: [spec.')


def test_a_quantity_that_is_none_is_refused(target: Target, name: str) -> None:
    body = pod(name, containers=container(resources={"requests": {"cpu": "much"}}))
    made = target.client.post(target.path("pods"), body)
    assert made.code == 400
    assert "quantities must match the regular expression" in made.message


def test_the_image_of_a_live_pod_may_change(target: Target, name: str) -> None:
    target.client.post(target.path("pods"), pod(name))
    steps = [{"op": "replace", "path": "/spec/containers/0/image", "value": "other:2"}]
    got = target.client.patch(target.path("pods", name), steps, JSON_PATCH)
    assert (got.code, got.body["spec"]["containers"][0]["image"]) == (200, "other:2")


@pytest.mark.parametrize(
    "step",
    [
        {"op": "replace", "path": "/spec/containers/0/imagePullPolicy", "value": "Never"},
        {"op": "add", "path": "/spec/containers/0/env", "value": [{"name": "A", "value": "b"}]},
        {"op": "replace", "path": "/spec/restartPolicy", "value": "Always"},
        {"op": "add", "path": "/spec/volumes/-", "value": {"name": "v", "emptyDir": {}}},
    ],
)
def test_the_rest_of_a_live_pod_may_not(target: Target, name: str, step: Obj) -> None:
    target.client.post(target.path("pods"), pod(name))
    got = target.client.patch(target.path("pods", name), [step], JSON_PATCH)
    assert (got.code, got.reason) == (422, "Invalid")
    assert got.message.startswith(
        f'Pod "{name}" is invalid: spec: Forbidden: pod updates may not change fields other than '
        "`spec.containers[*].image`"
    )


def test_a_deadline_may_be_set_and_shortened_but_not_lengthened(target: Target, name: str) -> None:
    target.client.post(target.path("pods"), pod(name))
    where = target.path("pods", name)

    def deadline(seconds: int | None) -> int:
        body = {"spec": {"activeDeadlineSeconds": seconds}}
        return target.client.patch(where, body, MERGE).code

    assert deadline(100) == 200
    assert deadline(50) == 200
    assert deadline(60) == 422
    assert deadline(None) == 422


def test_tolerations_may_only_be_added(target: Target, name: str) -> None:
    made = target.client.post(target.path("pods"), pod(name))
    where = target.path("pods", name)
    have = made.body["spec"]["tolerations"]
    more = [*have, {"key": "new", "operator": "Exists"}]
    got = target.client.patch(where, {"spec": {"tolerations": more}}, MERGE)
    assert got.code == 200, got.body
    got = target.client.patch(where, {"spec": {"tolerations": have}}, MERGE)
    assert got.code == 422


def test_labels_and_annotations_of_a_live_pod_may_change(target: Target, name: str) -> None:
    target.client.post(target.path("pods"), pod(name))
    change = {"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}}
    got = target.client.patch(target.path("pods", name), change, STRATEGIC)
    assert (got.code, got.body["metadata"]["labels"]) == (200, {"a": "b"})


def test_a_pod_that_fits_nowhere_is_unschedulable(target: Target, name: str) -> None:
    target.client.post(target.path("pods"), pod(name))

    told = eventually(lambda: condition_of(target, name))
    assert (told["status"], told["reason"]) == ("False", "Unschedulable")
    assert told["message"].startswith("0/1 nodes are available: 1 node(s) didn't match")


@pytest.mark.since(1, 36)
def test_the_scheduler_says_why_and_which_generation_it_means(target: Target, name: str) -> None:
    target.client.post(target.path("pods"), pod(name))
    told = eventually(lambda: condition_of(target, name))
    assert told["observedGeneration"] == 1
    assert re.fullmatch(
        r"0/(\d) nodes are available: \1 node\(s\) didn't match Pod's node affinity/selector\. "
        r"no new claims to deallocate, preemption: 0/\1 nodes are available: \1 Preemption is not "
        r"helpful for scheduling\.",
        told["message"],
    )


def condition_of(target: Target, name: str) -> Obj | None:
    status = target.client.get(target.path("pods", name)).body["status"]
    found = [c for c in status.get("conditions", ()) if c["type"] == "PodScheduled"]
    return found[0] if found else None


@pytest.mark.since(1, 36)
def test_each_change_of_a_pods_spec_is_a_generation(target: Target, name: str) -> None:
    gates = [{"name": "engine.test/gate"}]
    made = target.client.post(target.path("pods"), pod(name, schedulingGates=gates))
    assert made.body["metadata"]["generation"] == 1
    (gated,) = made.body["status"]["conditions"]
    assert gated.pop("lastTransitionTime") >= made.body["metadata"]["creationTimestamp"]
    assert gated == {
        "type": "PodScheduled",
        "status": "False",
        "lastProbeTime": None,
        "reason": "SchedulingGated",
        "message": "Scheduling is blocked due to non-empty scheduling gates",
    }
    where = target.path("pods", name)
    labelled = target.client.patch(where, {"metadata": {"labels": {"a": "b"}}}, MERGE)
    assert labelled.body["metadata"]["generation"] == 1
    steps = [{"op": "remove", "path": "/spec/schedulingGates"}]
    opened = target.client.patch(where, steps, JSON_PATCH)
    assert opened.body["metadata"]["generation"] == 2
    eventually(lambda: condition_of(target, name)["reason"] == "Unschedulable")  # type: ignore[index]
    assert condition_of(target, name)["observedGeneration"] == 2  # type: ignore[index]


def test_a_negative_grace_is_a_second(target: Target, name: str) -> None:
    body = pod(name, terminationGracePeriodSeconds=-5)
    made = target.client.post(target.path("pods"), body, dryRun="All")
    assert (made.code, made.body["spec"]["terminationGracePeriodSeconds"]) == (201, 1)


def test_the_log_of_an_unknown_container_is_a_bad_request(target: Target, name: str) -> None:
    target.client.post(target.path("pods"), pod(name))
    got = target.client.get(target.path("pods", name, "log"), container="other")
    assert (got.code, got.reason) == (400, "BadRequest")
    assert got.message == f"container other is not valid for pod {name}"


def test_a_pod_with_two_containers_wants_the_name_of_one(target: Target, name: str) -> None:
    two = [*container(), {"name": "side", "image": "x:1"}]
    target.client.post(target.path("pods"), pod(name, containers=two))
    got = target.client.get(target.path("pods", name, "log"))
    assert got.code == 400
    assert got.message.startswith(
        f"a container name must be specified for pod {name}, choose one of: [main side]"
    )


def test_the_log_of_a_pod_without_a_node_is_empty(target: Target, name: str) -> None:
    target.client.post(target.path("pods"), pod(name))
    got = target.client.get(target.path("pods", name, "log"))
    assert got.code in (200, 204)
    assert got.body in ("", {})
