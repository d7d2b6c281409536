"""Secrets that are in the namespace already: referred to, never copied, and looked for early."""

import base64
import json
from typing import Any

import pytest

from engine.sandbox import Sandbox
from tests.support.clusters import ClusterUnderTest
from tests.support.engine import Engine
from tests.support.objects import Objects

VALUE = "hunter2-of-the-namespace"


def put(objects: Objects, name: str, kind: str = "Opaque", **data: str) -> dict[str, Any]:
    """A Secret that somebody else made."""
    encoded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
    metadata = {"name": name, "namespace": objects.namespace}
    manifest = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": kind}
    return objects.api.create("secrets", {**manifest, "data": encoded}, objects.namespace)


def from_secret(name: str, key: str = "k") -> dict[str, Any]:
    return {"fromSecret": {"name": name, "key": key}}


def has_failed(objects: Objects, job: str) -> bool:
    """Whether an attempt of the job has."""
    record = objects.api.find("configmaps", f"{job}.record", objects.namespace)
    return record is not None and "ContainerConfigError" in json.dumps(record)


@pytest.mark.real
def test_every_container_gets_it_and_nothing_is_copied(
    engine: Engine, objects: Objects, target: ClusterUnderTest
) -> None:
    before = put(objects, "ci", k=VALUE)
    check = f"test ${{#KEY}} = {len(VALUE)}"
    target.script("job", container="first")
    engine.spec(
        "job",
        command=["sh", "-c", check],
        secrets={"KEY": from_secret("ci")},
        initContainers=[
            {"name": "first", "image": engine.image, "command": ["sh", "-c", check],
             "secrets": ["KEY"]},
        ],
        services=[
            {"name": "beside", "image": engine.image, "secrets": ["KEY"],
             "command": ["sh", "-c", f"{check} && exec sleep 60"]},
        ],
    )  # fmt: skip
    run = engine.reconcile("-vv", ends=0)
    assert objects.owned() == []
    assert objects.api.get("secrets", "ci", objects.namespace) == before
    known = json.dumps([*objects.pods(), *objects.api.list("configmaps", objects.namespace)])
    for text in (run.stdout, run.stderr, known):
        assert VALUE not in text
        assert before["data"]["k"] not in text


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ({"secrets": {"KEY": from_secret("missing")}}, 'main: secret "missing" not found'),
        ({"secrets": {"A": from_secret("ci"), "KEY": from_secret("ci", "other")}},
         "main: couldn't find key other in Secret {namespace}/ci"),
        ({"registryCredentials": [{"fromSecret": {"name": "missing"}}]},
         'registryCredentials: secret "missing" not found'),
        ({"registryCredentials": [{"fromSecret": {"name": "ci"}}]},
         "registryCredentials: couldn't find key .dockerconfigjson in Secret {namespace}/ci"),
    ],
)  # fmt: skip
def test_what_is_missing_is_told_before_anything_runs(
    engine: Engine, objects: Objects, spec: dict[str, Any], told: str
) -> None:
    """Nor are images pulled, or init containers run, for it."""
    put(objects, "ci", k=VALUE)
    first = {"name": "first", "image": engine.image, "command": ["sleep", "300"]}
    engine.spec("job", command=["true"], initContainers=[first], pullPolicy="Always", **spec)
    run = engine.reconcile(ends=1)
    job = run.job("job")
    assert job["reason"] == "ContainerConfigError"
    assert job["message"] == told.format(namespace=objects.namespace)
    (attempt,) = job["attempts"]
    assert attempt["outcome"] == "ContainerConfigError"
    objects.api.wait(lambda: not objects.pods(), "the end of the pod that never ran")
    assert VALUE not in run.stdout + run.stderr


def test_one_that_is_made_in_time_for_a_retry_is_found(engine: Engine, objects: Objects) -> None:
    retry = {"max": 4, "on": ["ContainerConfigError"]}
    engine.spec("job", command=["true"], secrets={"KEY": from_secret("late")}, retry=retry)
    process = engine.start()
    objects.api.wait(lambda: has_failed(objects, "job"), "the end of the first attempt")
    put(objects, "late", k=VALUE)
    stdout, stderr = process.communicate(timeout=120)
    assert process.returncode == 0, stderr
    outcomes = [attempt["outcome"] for attempt in json.loads(stdout)["jobs"][0]["attempts"]]
    assert (outcomes[0], outcomes[-1]) == ("ContainerConfigError", "Succeeded")


@pytest.mark.real
def test_one_that_goes_before_the_main_container_starts_is_told_as_well(
    engine: Engine, objects: Objects, target: ClusterUnderTest
) -> None:
    put(objects, "ci", k=VALUE)
    first = {"name": "first", "image": engine.image, "command": ["sleep", "8"]}
    target.script("job", lasts=12, container="first")
    engine.spec("job", command=["true"], secrets={"KEY": from_secret("ci")}, initContainers=[first])
    process = engine.start()
    objects.wait_until_ungated("job")
    objects.api.delete("secrets", "ci", objects.namespace)
    stdout, stderr = process.communicate(timeout=120)
    assert process.returncode == 1, stderr
    (job,) = json.loads(stdout)["jobs"]
    assert (job["reason"], job["message"]) == (
        "ContainerConfigError",
        'main: secret "ci" not found',
    )


@pytest.mark.only("sandbox")
def test_without_the_right_to_read_it_the_kubelet_tells(engine: Engine, sandbox: Sandbox) -> None:
    sandbox.deny("get", "secrets", namespace="ci")
    engine.spec("job", command=["true"], secrets={"KEY": from_secret("missing")})
    run = engine.reconcile(ends=1)
    assert run.job("job")["message"] == 'main: secret "missing" not found'


@pytest.mark.only("sandbox")
def test_a_login_of_the_namespace_opens_a_registry(
    engine: Engine, objects: Objects, sandbox: Sandbox
) -> None:
    image = "private.example/tool:1"
    sandbox.images.registry("private.example", users={"ci": VALUE})
    logins = {"auths": {"private.example": {"username": "ci", "password": VALUE}}}
    put(
        objects,
        "login",
        "kubernetes.io/dockerconfigjson",
        **{".dockerconfigjson": json.dumps(logins)},
    )
    login = [{"fromSecret": {"name": "login"}}]
    engine.spec("job", image=image, command=["true"], registryCredentials=login)
    engine.reconcile(ends=0)


@pytest.mark.only("sandbox")
def test_a_secret_that_the_operator_does_not_allow_is_neither_used_nor_looked_for(
    engine: Engine, objects: Objects, sandbox: Sandbox
) -> None:
    head = "apiVersion: jobs.engine/v1alpha1\nkind: EngineConfig\n"
    config = engine.write("../engine.yaml", head + "limits: {allowedSecrets: [ci-*]}\n")
    put(objects, "admin", k=VALUE)
    engine.spec("there", command=["true"], secrets={"KEY": from_secret("admin")})
    engine.spec("missing", command=["true"], secrets={"KEY": from_secret("nobodys")})
    said = engine.reconcile("--config", str(config), ends=2).stderr
    assert ".secretKeyRef.name admin is not allowed (limits.allowedSecrets: ci-*)" in said
    assert ".secretKeyRef.name nobodys is not allowed (limits.allowedSecrets: ci-*)" in said
    assert not sandbox.requests.where("get", "secrets")
    assert objects.pods() == []
