"""JobSpec objects in the sandbox: their definition, what owns whom, and rules without a library."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from deploy.crd import custom_resource_definitions
from engine.sandbox import Sandbox
from engine.sandbox.admission import custom_resources
from tests.support.client import Client, Obj
from tests.support.definitions import DEFINITIONS
from tests.support.sandbox_namespace import Namespace

if TYPE_CHECKING:
    import pytest

JOBS = "/apis/jobs.engine/v1alpha1/namespaces/ci/jobspecs"


def job(name: str = "build", **spec: object) -> Obj:
    head = {"apiVersion": "jobs.engine/v1alpha1", "kind": "JobSpec", "metadata": {"name": name}}
    return {**head, "spec": {"image": "busybox:1", **spec}}


def test_the_objects_go_with_their_definition_and_it_can_be_made_again(
    ci: Namespace, sandbox: Sandbox
) -> None:
    client = Client(sandbox.url)
    client.post(JOBS, job())
    version = client.get(JOBS).rv
    with client.watch(JOBS, resourceVersion=version) as watch:
        client.delete(f"{DEFINITIONS}/jobspecs.jobs.engine")
        sandbox.clock.settle()
        assert [event["type"] for event in watch] == ["DELETED"]
    assert client.get(JOBS).code == 404
    groups = client.get("/apis/jobs.engine/v1alpha1").body["resources"]
    assert [one["name"] for one in groups] == ["jobdefaults"]
    assert client.post(DEFINITIONS, custom_resource_definitions()[0]).code == 201
    assert client.get(JOBS).body["items"] == []


def test_a_dependent_goes_with_the_object_that_owns_it(ci: Namespace, sandbox: Sandbox) -> None:
    client = Client(sandbox.url)
    made = client.post(JOBS, job()).body
    owner = {
        "apiVersion": made["apiVersion"],
        "kind": "JobSpec",
        "name": "build",
        "uid": made["metadata"]["uid"],
        "controller": True,
    }
    config = {"metadata": {"name": "of-build", "ownerReferences": [owner]}}
    assert client.post(ci.path("configmaps"), config).code == 201
    client.delete(f"{JOBS}/build")
    sandbox.clock.settle()
    assert client.get(ci.path("configmaps", "of-build")).code == 404


def test_without_the_library_a_write_is_accepted_with_a_warning(
    ci: Namespace, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    custom_resources._program.cache_clear()
    monkeypatch.setitem(sys.modules, "cel", None)
    made = Client(sandbox.url).post(JOBS, job(timeout="soon"))
    assert made.code == 201, made.body
    assert "common-expression-language" in made.headers["Warning"]
    assert Client(sandbox.url).post(JOBS, job("other", retry={"max": 99})).code == 422
