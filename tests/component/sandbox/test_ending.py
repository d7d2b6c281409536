"""Ends from outside: deadlines, deletions, evictions, lost nodes."""

from __future__ import annotations

from email.utils import parsedate_to_datetime

import pytest

from engine.sandbox import FOREVER, Run, Sandbox
from tests.support.client import MERGE
from tests.support.sandbox_namespace import Namespace, container


@pytest.fixture
def forever(sandbox: Sandbox) -> None:
    sandbox.node.will(Run(duration=FOREVER))


@pytest.mark.usefixtures("forever")
def test_a_deadline_ends_the_pod_with_its_own_reason(ci: Namespace) -> None:
    ci.start(activeDeadlineSeconds=3600)
    ci.advance(3599)
    assert ci.phase() == "Running"
    ci.advance(1)
    status = ci.pod()["status"]
    assert (status["phase"], status["reason"]) == ("Failed", "DeadlineExceeded")
    assert status["message"] == "Pod was active on the node longer than the specified deadline"
    assert ci.state()["terminated"]["exitCode"] == 143
    assert "DeadlineExceeded" in ci.reasons()


def test_a_deadline_also_ends_a_pod_that_cannot_pull(ci: Namespace, sandbox: Sandbox) -> None:
    sandbox.images.down("registry.example")
    ci.start(activeDeadlineSeconds=60)
    ci.advance(61)
    assert ci.pod()["status"]["reason"] == "DeadlineExceeded"


@pytest.mark.usefixtures("forever")
def test_a_deadline_counts_from_the_start_not_from_the_creation(
    ci: Namespace, sandbox: Sandbox
) -> None:
    ci.start(activeDeadlineSeconds=60, nodeSelector={"zone": "a"})
    ci.advance(3600)
    assert ci.phase() == "Pending"
    node = {"metadata": {"labels": {"zone": "a"}}}
    ci.client.patch("/api/v1/nodes/sandbox-node", node, MERGE)
    ci.advance(59)
    assert ci.phase() == "Running"
    ci.advance(2)
    assert ci.phase() == "Failed"


@pytest.mark.usefixtures("forever")
def test_a_shortened_deadline_counts(ci: Namespace) -> None:
    ci.start(activeDeadlineSeconds=3600)
    ci.advance(10)
    ci.client.patch(ci.path("pods", "job"), {"spec": {"activeDeadlineSeconds": 20}}, MERGE)
    ci.advance(11)
    assert ci.phase() == "Failed"


def test_three_hours_pass_at_once_and_the_date_header_knows(
    ci: Namespace, sandbox: Sandbox
) -> None:
    before = ci.client.get("/version").headers["Date"]
    made = ci.start().body["metadata"]["creationTimestamp"]
    ci.advance(3 * 3600)
    after = ci.client.get("/version").headers["Date"]
    passed = parsedate_to_datetime(after) - parsedate_to_datetime(before)
    assert 10799 <= passed.total_seconds() <= 10801
    later = ci.start("later").body["metadata"]["creationTimestamp"]
    assert later > made


@pytest.mark.usefixtures("forever")
def test_an_evicted_pod_says_so(ci: Namespace, sandbox: Sandbox) -> None:
    ci.start()
    ci.advance(1)
    sandbox.node.evict("ci", "job", "The node was low on resource: memory.")
    status = ci.pod()["status"]
    assert (status["phase"], status["reason"]) == ("Failed", "Evicted")
    assert status["message"] == "The node was low on resource: memory."
    told = ci.condition("DisruptionTarget")
    assert (told["status"], told["reason"]) == ("True", "TerminationByKubelet")


@pytest.mark.usefixtures("forever")
def test_the_pods_of_a_lost_node_are_marked_after_their_tolerated_time(
    ci: Namespace, sandbox: Sandbox
) -> None:
    ci.start()
    ci.advance(1)
    sandbox.node.lose()
    ready = ci.client.get("/api/v1/nodes/sandbox-node").body["status"]["conditions"][0]
    assert ready["status"] == "Unknown"
    ci.advance(299)
    assert "deletionTimestamp" not in ci.pod()["metadata"]
    ci.advance(2)
    pod = ci.pod()
    assert ci.condition("DisruptionTarget")["reason"] == "DeletionByTaintManager"
    assert (pod["status"]["phase"], pod["status"].get("reason")) == ("Running", None)
    assert pod["metadata"]["deletionTimestamp"]
    ci.advance(3600)
    assert ci.client.get(ci.path("pods", "job")).code == 200
    sandbox.node.recover()
    ci.advance(1)
    assert ci.client.get(ci.path("pods", "job")).code == 404


def test_a_node_that_comes_back_in_time_tells_what_happened(
    ci: Namespace, sandbox: Sandbox
) -> None:
    sandbox.node.will(Run(duration=60))
    ci.start()
    ci.advance(1)
    sandbox.node.lose()
    ci.advance(120)
    assert ci.phase() == "Running"
    sandbox.node.recover()
    assert ci.phase() == "Succeeded"


def test_nothing_is_scheduled_on_a_lost_node(ci: Namespace, sandbox: Sandbox) -> None:
    sandbox.node.lose()
    ci.start()
    told = ci.condition("PodScheduled")
    assert told["reason"] == "Unschedulable"
    assert "untolerated taint {node.kubernetes.io/unreachable: }" in told["message"]
    sandbox.node.recover()
    ci.advance(1)
    assert ci.phase() == "Succeeded"


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"nodeSelector": {"gpu": "yes"}}, "didn't match Pod's node affinity/selector"),
        (
            {"containers": [container(resources={"requests": {"cpu": "2k"}})]},
            (
                "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, "
                "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
            ),
        ),
    ],
)
def test_a_pod_that_does_not_fit_waits_with_the_schedulers_words(
    ci: Namespace, spec: dict[str, object], words: str
) -> None:
    ci.start(**spec)
    told = ci.condition("PodScheduled")
    assert (told["status"], told["reason"]) == ("False", "Unschedulable")
    assert words in told["message"]
    assert ci.reasons() == ["FailedScheduling"]
    ci.client.delete(ci.path("pods", "job"))
    assert ci.client.get(ci.path("pods", "job")).code == 404
