"""Pods that somebody else holds back with a scheduling gate, as Kueue does."""

import json
import time
from typing import Any

import pytest

from tests.support.api import Object
from tests.support.clusters import ClusterUnderTest
from tests.support.engine import Engine, finish, kill
from tests.support.gates import GATE, HELD, hold, let_go, letting_go_of_deleted, preempt
from tests.support.objects import Objects


def wait_until_held(engine: Engine, objects: Objects, job: str) -> Object:
    """The job's pod, once nobody but the other one holds it."""

    def is_held() -> Object | None:
        found = engine.status().get(job, {})
        pods = objects.api.list("pods", objects.namespace, labels=f"jobs.engine/job={job}")
        gates = [pod["spec"].get("schedulingGates") for pod in pods]
        words = f"held by the scheduling gate {GATE}"
        is_queued = (found.get("state"), found.get("message")) == ("Queued", words)
        return pods[0] if is_queued and gates == [[{"name": GATE}]] else None

    return objects.api.wait(is_held, f"{job} Queued behind {GATE}")


@pytest.mark.real
@pytest.mark.clock(1)
def test_a_pod_with_the_gate_of_somebody_else_is_queued_until_its_owner_lets_it_go(
    engine: Engine, objects: Objects
) -> None:
    engine.spec(
        "job", script="true", startTimeout="15s", secrets={"A": {"value": "anything"}}, **HELD
    )
    process = engine.start()
    pod = wait_until_held(engine, objects, "job")
    time.sleep(17)
    assert engine.status()["job"]["state"] == "Queued"
    assert engine.status()["job"].get("queue") is None
    let_go(objects.api, pod)
    (attempt,) = finish(process, ends=0).job("job")["attempts"]
    assert attempt["uid"] == pod["metadata"]["uid"]


@pytest.mark.real
@pytest.mark.clock(1)
def test_the_time_to_start_begins_when_it_is_let_go_whichever_engine_is_there(
    engine: Engine, objects: Objects
) -> None:
    engine.spec("job", script="true", startTimeout="5s", nodeSelector={"no": "such-node"}, **HELD)
    process = engine.start()
    pod = wait_until_held(engine, objects, "job")
    kill(process)
    time.sleep(6)
    process = engine.start()
    time.sleep(1)
    let_go(objects.api, pod)
    began = time.monotonic()
    assert finish(process, ends=7).job("job")["reason"] == "StartTimeout"
    assert time.monotonic() - began >= 4.5


def test_a_job_that_is_cancelled_while_it_is_held_is_gone(engine: Engine, objects: Objects) -> None:
    engine.spec("job", script="true", **HELD)
    process = engine.start()
    wait_until_held(engine, objects, "job")
    engine.run("cancel", "job", "-n", engine.namespace, ends=0)
    assert finish(process, ends=1).job("job")["state"] == "Cancelled"
    objects.api.wait(lambda: not objects.pods(), "end of the pod")
    objects.wait_until_clean()


@pytest.mark.real
@pytest.mark.parametrize("started", [True, False])
def test_one_that_is_preempted_is_tried_again_while_its_owner_has_yet_to_let_go_of_the_pod(
    engine: Engine, objects: Objects, target: ClusterUnderTest, started: bool
) -> None:
    nowhere: dict[str, Any] = {} if started else {"nodeSelector": {"no": "such-node"}}
    script = target.script("job", lasts=120)
    engine.spec("job", script=script, retry={"max": 1}, **nowhere, **HELD)
    process = engine.start()
    first = wait_until_held(engine, objects, "job")
    hold(objects.api, first)
    let_go(objects.api, first)
    objects.api.wait(lambda: engine.status()["job"]["state"] != "Queued", "start")
    if started:
        objects.wait_until_running("job")
    message = preempt(objects.api, first)

    def is_next() -> bool:
        pods = objects.pods()
        return any(pod["metadata"]["uid"] != first["metadata"]["uid"] for pod in pods)

    with letting_go_of_deleted(objects.api, objects.namespace):
        objects.api.wait(is_next, "second pod")
        engine.run("cancel", "job", "-n", engine.namespace, ends=0)
    attempts = finish(process, ends=1).job("job")["attempts"]
    assert [one["outcome"] for one in attempts] == ["Preempted", "Cancelled"]
    assert attempts[0]["message"] == message
    objects.wait_until_clean()


def test_the_removal_of_one_that_is_held_does_not_fail_while_its_owner_lets_go_of_the_pod(
    engine: Engine, objects: Objects
) -> None:
    engine.spec("job", script="true", **HELD)
    process = engine.start("--source", objects.namespace)
    hold(objects.api, wait_until_held(engine, objects, "job"))
    kill(process)
    assert_removed_while_its_owner_lets_go(engine, objects)


@pytest.mark.real
def test_the_removal_of_one_that_runs_does_not_fail_while_its_owner_lets_go_of_the_pod(
    engine: Engine, objects: Objects, target: ClusterUnderTest
) -> None:
    engine.spec("job", script=target.script("job", lasts=120), **HELD)
    process = engine.start("--source", objects.namespace)
    pod = wait_until_held(engine, objects, "job")
    hold(objects.api, pod)
    let_go(objects.api, pod)
    objects.wait_until_running("job")
    kill(process)
    assert_removed_while_its_owner_lets_go(engine, objects)


def assert_removed_while_its_owner_lets_go(engine: Engine, objects: Objects) -> None:
    """The job whose spec is gone, with its pod, which somebody else's finalizer holds a moment."""
    (engine.folder / "job.yaml").unlink()
    with letting_go_of_deleted(objects.api, objects.namespace):
        engine.reconcile("--prune", "--source", objects.namespace, "--allow-empty", ends=0)
    assert objects.pods() == []
    objects.wait_until_clean()


def pruned(engine: Engine) -> list[tuple[str, str]]:
    run = engine.run("prune", "-n", engine.namespace, "-o", "json", ends=0)
    entries = [entry for entry in run.result["pruned"] if entry["kind"] == "Pod"]
    return [(entry["action"], entry["reason"]) for entry in entries]


def test_it_is_not_pruned_before_it_was_let_go(
    engine: Engine, objects: Objects, target: ClusterUnderTest
) -> None:
    """Whatever its age; from its scheduling on its TTL counts."""
    engine.spec("job", script=target.script("job", lasts=120), ttl="1s", **HELD)
    process = engine.start()
    pod = wait_until_held(engine, objects, "job")
    kill(process)
    time.sleep(2)
    assert pod["metadata"]["annotations"]["jobs.engine/ttl-from"] == "scheduling"
    assert pruned(engine) == [("protected", f"held by the scheduling gate {GATE}")]
    let_go(objects.api, pod)
    objects.wait_until_running("job")
    time.sleep(2)
    ((action, _),) = pruned(engine)
    assert action == "deleted"
    assert engine.status()["job"]["reason"] == "Cancelled"


@pytest.mark.only("sandbox")
@pytest.mark.parametrize("limit", ["maxTtl: 1d", "maxStartTimeout: 5m", "maxTimeout: 1h"])
@pytest.mark.parametrize("gated", ["the spec", "its defaults"])
def test_no_author_keeps_a_pod_beyond_a_limit_on_time_by_a_gate(
    engine: Engine, objects: Objects, gated: str, limit: str
) -> None:
    """Its clocks would stand still, and its TTL would never begin."""
    head = "apiVersion: jobs.engine/v1alpha1\nkind: EngineConfig\n"
    config = str(engine.write("../engine.yaml", f"{head}limits: {{{limit}}}\n"))
    engine.spec("job", script="true", **(HELD if gated == "the spec" else {}))
    if gated == "its defaults":
        defaults = {"apiVersion": "jobs.engine/v1alpha1", "kind": "JobDefaults", "spec": HELD}
        engine.write("defaults.yaml", json.dumps(defaults))
    run = engine.reconcile("--config", config, ends=2)
    assert "spec.podPatch.spec.schedulingGates is not allowed (limits.max" in run.stderr
    assert objects.pods() == []
