"""Attempts that 0.1 recorded before it created their pods, on a server without gates."""

import json
from typing import Any

import pytest

from engine.sandbox import Sandbox
from tests.support.clusters import NAMESPACE
from tests.support.engine import Engine
from tests.support.objects import Objects

pytestmark = pytest.mark.only("sandbox")

RECORD = "job.record"


@pytest.fixture
def pod(engine: Engine, objects: Objects) -> dict[str, Any]:
    """The finished pod of a job whose record is as 0.1 left it when it was killed at its start."""
    engine.spec("job", script="true")
    engine.reconcile(ends=0)
    record = objects.api.get("configmaps", RECORD, NAMESPACE)
    data = json.loads(record["data"]["record.json"])
    (attempt,) = data["attempts"]
    data = {key: data[key] for key in ("source", "specHash", "queuedAt")} | {
        "state": "Starting",
        "attempts": [{key: attempt[key] for key in ("number", "pod", "claimedAt")}],
    }
    record["data"]["record.json"] = json.dumps(data)
    objects.api.replace("configmaps", record, NAMESPACE)
    return objects.pod("job")


def test_a_pod_that_is_there_tells_the_outcome(
    engine: Engine, sandbox: Sandbox, pod: dict[str, Any]
) -> None:
    sandbox.requests.clear()
    run = engine.reconcile(ends=0)
    (attempt,) = run.job("job")["attempts"]
    assert (attempt["uid"], attempt["outcome"]) == (pod["metadata"]["uid"], "Succeeded")
    assert not sandbox.requests.where("create", "pods")


def test_a_pod_that_is_nowhere_may_have_run_and_is_not_created_again(
    engine: Engine, sandbox: Sandbox, objects: Objects, pod: dict[str, Any]
) -> None:
    name = pod["metadata"]["name"]
    objects.api.delete("pods", name, NAMESPACE, grace=0)
    sandbox.requests.clear()
    job = engine.reconcile().job("job")
    assert (job["state"], job["reason"]) == ("Failed", "PodDeleted")
    assert job["message"] == f'pods "{name}" not found'
    assert engine.reconcile().job("job")["changed"] is False
    assert not sandbox.requests.where("create", "pods")


def test_it_can_be_cancelled_although_it_has_no_uid(
    engine: Engine, objects: Objects, pod: dict[str, Any]
) -> None:
    engine.run("cancel", "job", "-n", NAMESPACE, ends=0)
    assert engine.reconcile().job("job")["reason"] == "Cancelled"
    assert objects.pod("job")["metadata"]["uid"] == pod["metadata"]["uid"]
