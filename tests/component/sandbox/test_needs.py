"""Pods that need Secrets and ConfigMaps which aren't there, or not yet."""

from __future__ import annotations

from tests.support.sandbox_namespace import Namespace, container

MOUNTED = [container(volumeMounts=[{"name": "v", "mountPath": "/v"}])]


def test_a_missing_volume_source_keeps_the_pod_creating(ci: Namespace) -> None:
    ci.start(volumes=[{"name": "v", "configMap": {"name": "late"}}], containers=MOUNTED)
    ci.advance(5)
    assert ci.waiting() == ("ContainerCreating", "")
    assert "FailedMount" in ci.reasons()
    ci.client.post(ci.path("configmaps"), {"metadata": {"name": "late"}})
    ci.advance(3)
    assert ci.phase() == "Succeeded"


def test_the_event_names_the_missing_secret(ci: Namespace) -> None:
    ci.start(volumes=[{"name": "v", "secret": {"secretName": "nope"}}], containers=MOUNTED)
    (event,) = ci.client.get(ci.path("events"), fieldSelector="reason=FailedMount").body["items"]
    assert event["message"] == ('MountVolume.SetUp failed for volume "v" : secret "nope" not found')


def test_repeated_events_are_counted(ci: Namespace) -> None:
    ci.start(volumes=[{"name": "v", "secret": {"secretName": "nope"}}], containers=MOUNTED)
    ci.advance(20)
    (event,) = ci.client.get(ci.path("events"), fieldSelector="reason=FailedMount").body["items"]
    assert event["count"] > 5


def test_a_missing_key_is_a_config_error_until_it_is_there(ci: Namespace) -> None:
    ci.client.post(ci.path("configmaps"), {"metadata": {"name": "c"}, "data": {"a": "1"}})
    source = {"configMapKeyRef": {"name": "c", "key": "b"}}
    ci.start(containers=[container(env=[{"name": "B", "valueFrom": source}])])
    ci.advance(1)
    assert ci.waiting() == (
        "CreateContainerConfigError",
        "couldn't find key b in ConfigMap ci/c",
    )
    ci.client.patch(ci.path("configmaps", "c"), {"data": {"b": "2"}})
    ci.advance(3)
    assert ci.phase() == "Succeeded"


def test_what_is_optional_may_be_missing(ci: Namespace) -> None:
    key = {"secretKeyRef": {"name": "nope", "key": "x", "optional": True}}
    ci.start(
        volumes=[{"name": "v", "secret": {"secretName": "nope", "optional": True}}],
        containers=[{**MOUNTED[0], "env": [{"name": "X", "valueFrom": key}]}],
    )
    ci.advance(1)
    assert ci.phase() == "Succeeded"


def test_an_unknown_service_account_is_refused(ci: Namespace) -> None:
    made = ci.start(serviceAccountName="builder")
    assert made.code == 403
    assert made.message == (
        'pods "job" is forbidden: error looking up service account ci/builder: serviceaccount '
        '"builder" not found'
    )
    ci.client.post(ci.path("serviceaccounts"), {"metadata": {"name": "builder"}})
    assert ci.start(serviceAccountName="builder").code == 201
