"""How a Pod that can start is started, runs and ends."""

from __future__ import annotations

from engine.sandbox import FOREVER, Clock, Run, Sandbox
from tests.support.client import eventually
from tests.support.sandbox_namespace import Namespace, container


def test_a_pod_is_scheduled_pulled_run_and_done(ci: Namespace) -> None:
    ci.start()
    assert ci.phase() == "Pending"
    assert ci.waiting() == ("ContainerCreating", "")
    assert ci.condition("PodScheduled")["status"] == "True"
    assert ci.pod()["spec"]["nodeName"] == "sandbox-node"
    ci.advance(0.05)
    assert ci.phase() == "Running"
    assert "running" in ci.state()
    assert ci.condition("Ready")["status"] == "True"
    ci.advance(0.1)
    assert ci.phase() == "Running"
    ended = ci.state()["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (0, "Completed")
    assert ci.condition("Ready")["reason"] == "PodCompleted"
    ci.advance(0.1)
    assert ci.phase() == "Succeeded"
    assert ci.reasons() == ["Scheduled", "Pulling", "Pulled", "Created", "Started"]


def test_the_node_says_that_it_runs_nothing(ci: Namespace) -> None:
    node = ci.client.get("/api/v1/nodes/sandbox-node").body
    assert "runs no container" in node["status"]["nodeInfo"]["osImage"]


def test_a_script_fails_with_its_exit_code_and_its_log(ci: Namespace, sandbox: Sandbox) -> None:
    sandbox.node.will(Run(duration=5, exit_code=3, log=("one", "two")), pod="job")
    ci.start()
    ci.advance(4)
    assert ci.phase() == "Running"
    ci.advance(2)
    assert ci.phase() == "Failed"
    assert ci.state()["terminated"]["exitCode"] == 3
    assert ci.state()["terminated"]["reason"] == "Error"
    assert ci.log() == "one\ntwo\n"


def test_out_of_memory_has_its_own_reason(ci: Namespace, sandbox: Sandbox) -> None:
    sandbox.node.will(Run(reason="OOMKilled", exit_code=137), image="*/tool:*")
    ci.start()
    ci.advance(1)
    ended = ci.state()["terminated"]
    assert (ended["reason"], ended["exitCode"]) == ("OOMKilled", 137)


def test_init_containers_run_one_after_the_other_before_the_rest(ci: Namespace) -> None:
    ci.start(initContainers=[container("first"), container("second")])
    assert ci.waiting("main") == ("PodInitializing", "")
    ci.advance(0.1)
    assert "running" in ci.state("first")
    assert "waiting" in ci.state("second")
    assert ci.condition("Initialized")["status"] == "False"
    ci.advance(0.1)
    assert "terminated" in ci.state("first")
    assert "running" in ci.state("second")
    ci.advance(0.1)
    assert "running" in ci.state("main")
    ci.advance(0.2)
    assert ci.phase() == "Succeeded"


def test_a_job_with_a_sidecar_ends(ci: Namespace) -> None:
    ci.start(initContainers=[container("db", restartPolicy="Always")])
    ci.advance(0.11)
    assert "running" in ci.state("db")
    assert "running" in ci.state("main")
    ci.advance(0.2)
    assert ci.phase() == "Succeeded"
    assert "terminated" in ci.state("db")
    assert "Killing" in ci.reasons()


def test_a_sidecar_starts_before_the_init_containers_behind_it(ci: Namespace) -> None:
    ci.start(
        initContainers=[container("db", restartPolicy="Always"), container("prepare", "other:1")]
    )
    ci.advance(0.06)
    assert "running" in ci.state("db")
    assert "waiting" in ci.state("prepare")
    ci.advance(0.05)
    assert "running" in ci.state("db")


def test_a_sidecar_takes_its_time_to_stop(ci: Namespace, sandbox: Sandbox) -> None:
    sandbox.node.will(Run(duration=FOREVER, stop=5), container="db")
    ci.start(initContainers=[container("db", restartPolicy="Always")])
    ci.advance(1)
    assert ci.phase() == "Running"
    ci.advance(5)
    assert ci.phase() == "Succeeded"


def test_a_service_as_a_plain_container_keeps_the_pod_running(
    ci: Namespace, sandbox: Sandbox
) -> None:
    sandbox.node.will(Run(duration=FOREVER), container="redis")
    ci.start(containers=[container(), container("redis", "redis:7")])
    ci.advance(3600)
    assert ci.phase() == "Running"
    assert ci.state("main")["terminated"]["exitCode"] == 0
    assert "running" in ci.state("redis")


def test_several_main_containers_succeed_only_together(ci: Namespace, sandbox: Sandbox) -> None:
    sandbox.node.will(Run(exit_code=1), container="second")
    ci.start(containers=[container(), container("second")])
    ci.advance(1)
    assert ci.phase() == "Failed"


def test_a_speeded_up_clock_moves_by_itself() -> None:
    with Sandbox(clock=Clock(speed=100)) as fast:
        place = Namespace.of(fast)
        fast.node.will(Run(duration=20))
        place.start()
        eventually(lambda: place.phase() == "Succeeded")
