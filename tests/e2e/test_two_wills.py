"""Two processes that read different revisions of one spec: each asks for its own once."""

import signal
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.sandbox import Fault, Latency, Run, Sandbox
from tests.support.clusters import ClusterUnderTest
from tests.support.engine import Engine, finish
from tests.support.engine_process import EngineProcess, wait_for_state
from tests.support.objects import Objects


@pytest.fixture
def other(engine: Engine, tmp_path: Path) -> Engine:
    """Another checkout of the same source."""
    folder = tmp_path / "other"
    folder.mkdir()
    return replace(engine, folder=folder, started=[])


def created(target: ClusterUnderTest) -> int:
    """How many pods the engines made."""
    return sum((verb, kind) == ("create", "pods") for verb, kind, _ in target.writes())


def wait_for_run(objects: Objects, revision: str) -> dict[str, Any]:
    """The pod of the run of this spec hash, once it runs."""

    def running() -> dict[str, Any] | None:
        return next(
            (
                pod
                for pod in objects.pods()
                if pod["metadata"]["labels"]["jobs.engine/run"] == revision[:8]
                and pod["status"]["phase"] == "Running"
            ),
            None,
        )

    return objects.api.wait(running, f"running pod of {revision}")


def hash_of(engine: Engine) -> str:
    plan = engine.run("diff", str(engine.folder), "-o", "json", "--source", "any").result
    return str(plan["jobs"][0]["specHash"])


def test_two_pipelines_of_different_commits_do_not_replace_each_other_back(
    engine: Engine, other: Engine, target: ClusterUnderTest, objects: Objects
) -> None:
    script = target.script("job", lasts=8)
    engine.spec("job", script=script)
    other.spec("job", script=script, env={"COMMIT": "2"})
    target.forget_requests()
    first = engine.start()
    objects.wait_until_running("job")
    second = other.start()
    superseded = finish(first, ends=5).job("job")
    assert (superseded["state"], superseded["reason"]) == ("Cancelled", "Superseded")
    assert finish(second, ends=0).job("job")["state"] == "Succeeded"
    assert created(target) == 2
    # The next pipeline of the first commit asks anew.
    assert engine.reconcile(ends=0).job("job")["changed"]


@pytest.mark.only("sandbox")
def test_a_pipeline_that_finds_the_run_of_another_is_told_which_and_leaves_it(
    engine: Engine, other: Engine, sandbox: Sandbox, objects: Objects
) -> None:
    """It was paused meanwhile, and did not see the end of its own."""
    sandbox.node.will(Run(duration=300), pod="job-*")
    engine.spec("job", script="make")
    other.spec("job", script="make", env={"COMMIT": "2"})
    first = engine.start()
    objects.wait_until_running("job")
    first.send_signal(signal.SIGSTOP)
    run = other.reconcile("--wait", "applied", ends=0).job("job")["specHash"]
    first.send_signal(signal.SIGCONT)
    superseded = finish(first, ends=5).job("job")
    assert superseded["reason"] == "Superseded"
    uid = wait_for_run(objects, run)["metadata"]["uid"]

    def is_alone() -> bool:
        return [one["metadata"]["uid"] for one in objects.pods()] == [uid]

    objects.api.wait(is_alone, "end of the first pod")


@pytest.mark.only("sandbox")
def test_an_engine_that_stays_is_superseded_until_its_own_file_changes(
    engine: Engine, other: Engine, sandbox: Sandbox, target: ClusterUnderTest, objects: Objects
) -> None:
    sandbox.node.will(Run(duration=300), pod="job-*")
    engine.spec("job", script="make")
    other.spec("job", script="make", env={"COMMIT": "2"})
    with EngineProcess(engine) as staying:
        objects.wait_until_running("job")
        other.reconcile("--source", engine.namespace, "--wait", "applied", ends=0)
        line = staying.wait_for_line("superseded by run")
        assert f"of source '{engine.namespace}', begun by engine " in line
        assert line.endswith(
            "spec.env differs (reconcile again, or change the spec, to replace it)"
        )
        assert other.status()["job"]["state"] in ("Starting", "Running")
        other.run("cancel", "job", "-n", engine.namespace, ends=0)
        other.run("rerun", "job", "-n", engine.namespace, ends=0)
        other.reconcile("--source", engine.namespace, "--wait", "applied", ends=0)
        assert created(target) == 3
        engine.spec("job", script="make", env={"COMMIT": "3"})
        wait_for_run(objects, hash_of(engine))
        assert created(target) == 4


@pytest.mark.only("sandbox")
def test_the_end_of_a_run_that_its_own_process_left_is_recorded_by_the_superseded_engine(
    engine: Engine, other: Engine, sandbox: Sandbox, objects: Objects
) -> None:
    sandbox.node.will(Run(duration=300), pod="job-*")
    engine.spec("job", script="make")
    other.spec("job", script="make", env={"COMMIT": "2"}, retry={"max": 1})
    with EngineProcess(engine) as staying:
        objects.wait_until_running("job")
        run = other.reconcile("--source", engine.namespace, "--wait", "applied", ends=0)
        staying.wait_for_line("superseded by run")
        pod = wait_for_run(objects, run.job("job")["specHash"])
        sandbox.node.evict(engine.namespace, pod["metadata"]["name"])
        wait_for_state(engine, "job", "Failed")
    assert engine.status()["job"]["reason"] == "Evicted"


@pytest.mark.only("sandbox")
@pytest.mark.parametrize("next_one", ["its own", "the other's", "cancel"])
def test_a_run_that_waits_when_its_process_ends_is_left_to_the_next_that_asks(
    engine: Engine, other: Engine, sandbox: Sandbox, objects: Objects, next_one: str
) -> None:
    """A waiting process shows nothing of itself: an engine that it superseded can't end its run."""
    sandbox.node.will(Run(duration=300), pod="job-*")
    source = ("--source", engine.namespace)
    engine.spec("job", script="make")
    other.spec("job", script="make", env={"COMMIT": "2"})
    with EngineProcess(engine) as staying:
        objects.wait_until_running("job")
        sandbox.quota(engine.namespace, pods="0")
        queued = other.reconcile(*source, "--queue-timeout", "1s", ends=5).job("job")
        staying.wait_for_line("superseded by run")
        sandbox.quota(engine.namespace, pods="9")
        sandbox.node.will(Run(duration=0.05), pod="job-*")
        time.sleep(3)  # in which the engine that stays sees that there is room
        assert objects.pods() == []
        assert engine.status()["job"]["state"] == "Queued"
        if next_one == "cancel":
            engine.run("cancel", "job", "-n", engine.namespace, ends=0)
            assert engine.status()["job"]["state"] == "Cancelled"
        else:
            asking = other if next_one == "its own" else engine
            done = asking.reconcile(*source, ends=0).job("job")
            assert (done["specHash"] == queued["specHash"]) == (asking is other)
            assert len(done["attempts"]) == 1


@pytest.mark.only("sandbox")
def test_a_file_that_says_how_a_failed_job_is_tried_is_asked_for_once_by_each(
    engine: Engine, other: Engine, sandbox: Sandbox, target: ClusterUnderTest
) -> None:
    """Another timeout tries a failed job again; that of another process doesn't undo it."""
    sandbox.node.will(Run(duration=3, exit_code=1), pod="job-*")
    engine.spec("job", script="make", timeout="1h")
    other.spec("job", script="make", timeout="2h")
    with EngineProcess(engine) as staying:
        wait_for_state(engine, "job", "Failed")
        other.reconcile("--source", engine.namespace, ends=1)
        staying.wait_for_line("Failed ScriptFailed", times=2)
        assert created(target) == 2
        assert "superseded" not in staying.text


@pytest.mark.only("sandbox")
def test_two_processes_that_keep_a_job_in_two_ways_write_each_its_own_once(
    engine: Engine, other: Engine, sandbox: Sandbox, target: ClusterUnderTest, objects: Objects
) -> None:
    sandbox.node.will(Run(duration=9), pod="job-*")
    engine.spec("job", script="make", ttl="1h")
    other.spec("job", script="make", ttl="2h")
    target.forget_requests()
    first = engine.start()
    objects.wait_until_running("job")
    second = other.start()
    finish(first, ends=0)
    finish(second, ends=0)
    patches = [verb for verb, kind, _ in target.writes() if (verb, kind) == ("patch", "pods")]
    assert len(patches) <= 1 + 2


@pytest.mark.only("sandbox")
@pytest.mark.parametrize("shared", [True, False])
def test_a_leader_that_was_paused_leaves_the_run_that_another_has_begun(
    engine: Engine, other: Engine, sandbox: Sandbox, objects: Objects, *, shared: bool
) -> None:
    """It is paused between the pod and its Secret, and the spec changes meanwhile."""
    secrets = {"TOKEN": {"value": "anything"}}
    sandbox.node.will(Run(duration=300), pod="job-*")
    engine.spec("job", script="make", secrets=secrets)
    fault = sandbox.faults.add(Fault(Latency(4), verb="create", resource="secrets", times=1))
    other = engine if shared else other
    with EngineProcess(engine, "--leader-elect", ready=False) as one:
        objects.api.wait(lambda: sandbox.faults.hits(fault), "its second step")
        one.send(signal.SIGSTOP)
        time.sleep(5)  # a run that begins sooner may be of a file that is as old as its own
        other.spec("job", script="make", secrets=secrets, env={"COMMIT": "2"})
        with EngineProcess(other, "--leader-elect", ready=False) as two:
            pod = wait_for_run(objects, hash_of(other))
            one.send(signal.SIGCONT)
            one.wait_for_line("is shared by 2 engines")
            two.stop()
            one.wait_until_ready()
            if not shared:
                one.wait_for_line("superseded by run")
        assert [found["metadata"]["uid"] for found in objects.pods()] == [pod["metadata"]["uid"]]


@pytest.mark.only("sandbox")
def test_a_leader_that_was_paused_in_a_removal_leaves_the_job_that_another_has_brought_back(
    engine: Engine, sandbox: Sandbox, objects: Objects
) -> None:
    sandbox.node.will(Run(duration=300), pod="job-*")
    sandbox.node.will(Run(duration=0.05), pod="kept-*")
    engine.spec("kept", script="true")
    engine.spec("job", script="make")
    with EngineProcess(engine, "--leader-elect", "--prune", ready=False) as old:
        objects.wait_until_running("job")
        fault = sandbox.faults.add(Fault(Latency(4), verb="list", resource="secrets", times=1))
        (engine.folder / "job.yaml").unlink()
        objects.api.wait(lambda: sandbox.faults.hits(fault), "its removal")
        old.send(signal.SIGSTOP)
        engine.spec("job", script="make", env={"COMMIT": "2"})
        with EngineProcess(engine, "--leader-elect", "--prune", ready=False):
            pod = wait_for_run(objects, hash_of(engine))
            old.send(signal.SIGCONT)
            old.wait_for_line("is shared by 2 engines")
        there = objects.api.get("pods", pod["metadata"]["name"], engine.namespace)
        assert there["metadata"]["uid"] == pod["metadata"]["uid"]
        assert "deletionTimestamp" not in there["metadata"]
        assert engine.status()["job"]["state"] in ("Starting", "Running")


@pytest.mark.only("sandbox")
def test_a_pipeline_that_prunes_leaves_the_job_that_a_later_one_has_brought_back(
    engine: Engine, other: Engine, sandbox: Sandbox, objects: Objects
) -> None:
    """The earlier pipeline announced the removal, and the later one ran the job meanwhile."""
    sandbox.node.will(Run(duration=300), pod="job-*")
    sandbox.node.will(Run(duration=12), pod="slow-*")
    for one in (engine, other):
        one.spec("other", script="true")
    other.spec("job", script="make")
    source = ("--source", "web")
    engine.spec("job", script="true", image="registry.example/busybox:2")
    sandbox.node.will(Run(duration=0.05), pod="job-*")
    engine.reconcile(*source, ends=0)
    (engine.folder / "job.yaml").unlink()
    engine.spec("slow", script="true")
    sandbox.node.will(Run(duration=300), pod="job-*")
    earlier = engine.start(*source, "--prune", "--yes")
    objects.wait_until_running("slow")
    later = other.reconcile(*source, "--wait", "applied", ends=0).job("job")["specHash"]
    pruned = finish(earlier, ends=0).result["pruned"]
    pod = wait_for_run(objects, later)
    assert engine.status()["job"]["state"] in ("Starting", "Running")
    assert pod["metadata"]["name"] not in {entry["name"] for entry in pruned}
