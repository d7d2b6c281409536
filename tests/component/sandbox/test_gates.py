"""Scheduling gates and native sidecars."""

from __future__ import annotations

from tests.support.client import JSON_PATCH, MERGE
from tests.support.sandbox_namespace import GATE, Namespace, container

GATES = [{"name": GATE}]


def test_a_gated_pod_never_starts(ci: Namespace) -> None:
    ci.start(schedulingGates=GATES)
    ci.advance(24 * 3600)
    pod = ci.pod()
    assert pod["status"]["phase"] == "Pending"
    assert "nodeName" not in pod["spec"]
    assert "startTime" not in pod["status"]
    told = ci.condition("PodScheduled")
    assert (told["status"], told["reason"]) == ("False", "SchedulingGated")


def test_a_pod_starts_when_its_gate_is_removed(ci: Namespace) -> None:
    made = ci.start(schedulingGates=GATES)
    steps = [
        {"op": "test", "path": "/metadata/uid", "value": made.uid},
        {"op": "remove", "path": "/spec/schedulingGates"},
    ]
    got = ci.client.patch(ci.path("pods", "job"), steps, JSON_PATCH)
    assert got.code == 200, got.body
    assert "schedulingGates" not in got.body["spec"]
    ci.advance(1)
    assert ci.phase() == "Succeeded"


def test_gates_can_only_be_removed(ci: Namespace) -> None:
    ci.start(schedulingGates=GATES)
    more = {"spec": {"schedulingGates": [*GATES, {"name": "another.gate/x"}]}}
    got = ci.client.patch(ci.path("pods", "job"), more, MERGE)
    assert got.code == 422
    assert "only deletion is allowed, but found new scheduling gate 'another.gate/x'" in got.message


def test_a_running_pod_cannot_be_gated(ci: Namespace) -> None:
    ci.start()
    got = ci.client.patch(ci.path("pods", "job"), {"spec": {"schedulingGates": GATES}}, MERGE)
    assert got.code == 422


def test_a_gated_pod_cannot_have_a_node(ci: Namespace) -> None:
    made = ci.start(schedulingGates=GATES, nodeName="sandbox-node")
    assert made.code == 422
    assert "cannot be set until all schedulingGates have been cleared" in made.message
    ci.start(schedulingGates=GATES)
    binding = {"target": {"name": "sandbox-node"}}
    assert ci.client.post(ci.path("pods", "job", "binding"), binding).code == 400


def test_a_deadline_does_not_run_while_the_gate_is_shut(ci: Namespace) -> None:
    ci.start(schedulingGates=GATES, activeDeadlineSeconds=10)
    ci.advance(3600)
    ci.open_gate()
    ci.advance(1)
    assert ci.phase() == "Succeeded"


def test_a_gated_pod_is_deleted_at_once(ci: Namespace) -> None:
    ci.start(schedulingGates=GATES)
    ci.client.delete(ci.path("pods", "job"))
    assert ci.client.get(ci.path("pods", "job")).code == 404


def test_a_restart_policy_is_for_init_containers_only(ci: Namespace) -> None:
    made = ci.start(containers=[container(restartPolicy="Always")])
    assert made.code == 422
    assert "may not be set for non-init containers" in made.message
