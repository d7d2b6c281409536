"""Scheduling gates: nothing runs before it is owned and recorded."""

import base64
import signal

import pytest

from engine.sandbox import Fault, Sandbox, ServerError
from tests.support.api import Api
from tests.support.clusters import NAMESPACE
from tests.support.engine import Engine, finish, kill
from tests.support.objects import Objects

pytestmark = pytest.mark.only("sandbox")

GATE = {"name": "jobs.engine/dependents"}


def gates(pod: dict[str, object]) -> object:
    spec = pod["spec"]
    assert isinstance(spec, dict)
    return spec.get("schedulingGates", [])


def test_the_gate_opens_after_the_secret_the_configmap_and_the_record(
    engine: Engine, sandbox: Sandbox
) -> None:
    engine.spec("job", script="true", secrets={"A": {"value": "anything"}})
    engine.reconcile(ends=0)
    writes = [(entry.verb, entry.resource) for entry in sandbox.requests.writes]
    assert writes[:5] == [
        ("create", "pods"),
        ("create", "secrets"),
        ("create", "configmaps"),
        ("create", "configmaps"),
        ("patch", "pods"),
    ]
    names = [entry.path for entry in sandbox.requests.writes]
    assert len(writes) == len(names) == 6
    assert writes[5] == ("update", "configmaps")


@pytest.mark.parametrize("stuck", ["secrets", "configmaps"])
def test_a_pod_whose_dependents_can_not_be_made_never_starts(
    engine: Engine, sandbox: Sandbox, objects: Objects, stuck: str
) -> None:
    sandbox.faults.add(Fault(ServerError(503), verb="create", resource=stuck, times=None))
    engine.spec("job", script="true", secrets={"A": {"value": "anything"}})
    engine.reconcile("--timeout", "6s", ends=3)
    pod = objects.pod("job")
    assert gates(pod) == [GATE]
    assert pod["status"]["phase"] == "Pending"
    assert "nodeName" not in pod["spec"]


def test_a_gated_pod_that_a_dead_engine_did_not_record_is_made_anew_and_runs_once(
    engine: Engine, sandbox: Sandbox, objects: Objects
) -> None:
    fault = Fault(ServerError(503), verb="create", resource="configmaps", times=None)
    sandbox.faults.add(fault)
    engine.spec("job", script="true")
    process = engine.start()
    uid = objects.api.wait(lambda: _uid(sandbox), "gated pod")
    kill(process)
    sandbox.faults.clear()
    run = engine.reconcile(ends=0)
    (attempt,) = run.job("job")["attempts"]
    assert attempt["uid"] == objects.pod("job")["metadata"]["uid"] != uid


def test_a_gated_pod_that_is_gone_before_it_was_recorded_is_made_again(
    engine: Engine, sandbox: Sandbox, objects: Objects
) -> None:
    sandbox.faults.add(Fault(ServerError(503), verb="create", resource="configmaps", times=None))
    engine.spec("job", script="true")
    process = engine.start()
    uid = objects.api.wait(lambda: _uid(sandbox), "gated pod")
    kill(process)
    sandbox.faults.clear()
    api = Api.from_kubeconfig(engine.kubeconfig)
    api.delete("pods", objects.pod("job")["metadata"]["name"], NAMESPACE, grace=0)
    run = engine.reconcile(ends=0)
    (attempt,) = run.job("job")["attempts"]
    assert attempt["uid"] != uid


def test_a_gate_of_the_users_own_keeps_the_pod_waiting_for_its_owner(
    engine: Engine, objects: Objects
) -> None:
    engine.spec("job", script="true", podPatch={"spec": {"schedulingGates": [{"name": "my/gate"}]}})
    engine.reconcile("--timeout", "6s", ends=3)
    assert gates(objects.pod("job")) == [{"name": "my/gate"}]


def _uid(sandbox: Sandbox) -> str:
    pods = sandbox.objects("pods", NAMESPACE)
    return str(pods[0]["metadata"]["uid"]) if pods else ""


def test_a_secret_that_a_stranger_makes_in_the_pods_name_is_replaced(
    engine: Engine, sandbox: Sandbox, objects: Objects
) -> None:
    """It has the job's labels and the pod for an owner, and was there before the engine's."""
    fault = Fault(ServerError(503), verb="create", resource="secrets", times=None)
    sandbox.faults.add(fault)
    engine.spec("job", script="true", secrets={"TOKEN": {"value": "the-right-value"}})
    process = engine.start()
    objects.api.wait(lambda: _uid(sandbox), "gated pod")
    process.send_signal(signal.SIGSTOP)
    sandbox.faults.clear()
    pod = objects.pod("job")["metadata"]
    owner = {"apiVersion": "v1", "kind": "Pod", "name": pod["name"], "uid": pod["uid"]}
    metadata = {"name": pod["name"], "labels": pod["labels"], "ownerReferences": [owner]}
    forged = {"metadata": metadata, "type": "Opaque", "data": {"TOKEN": "d3Jvbmc="}}
    made = objects.api.create("secrets", forged | {"immutable": True}, objects.namespace)
    process.send_signal(signal.SIGCONT)
    finish(process, ends=0)
    found = objects.api.get("secrets", pod["name"], objects.namespace)
    assert found["metadata"]["uid"] != made["metadata"]["uid"]
    assert base64.b64decode(found["data"]["TOKEN"]) == b"the-right-value"
