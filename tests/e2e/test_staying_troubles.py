"""A server in a bad state, and an engine that stays: it says so, spares it, and ends in time."""

import signal
import time

import pytest

from engine.sandbox import ExpireWatch, Fault, Latency, LostReply, Run, Sandbox, ServerError
from tests.support.client import eventually
from tests.support.clusters import NAMESPACE
from tests.support.engine import Engine
from tests.support.engine_process import EngineProcess, wait_for_state
from tests.support.objects import Objects

pytestmark = pytest.mark.only("sandbox")


def test_with_a_server_that_answers_nothing_it_is_not_ready_until_it_does_again(
    engine: Engine, sandbox: Sandbox
) -> None:
    with EngineProcess(engine) as staying:
        frozen = sandbox.faults.add(Fault(Latency(4.0), times=None))
        told = staying.wait_for_probe("/readyz", 503)
        assert "[-]leader: no engine is known to follow this source" in told
        assert staying.probe("/healthz")[0] == 200
        sandbox.faults.remove(frozen)
        staying.wait_until_ready()


def test_a_lease_that_nobody_holds_keeps_no_job_waiting_for_longer_than_ones_own(
    engine: Engine, objects: Objects
) -> None:
    metadata = {"name": f"engine-{NAMESPACE}", "namespace": NAMESPACE}
    ghost = {
        "holderIdentity": "ghost",
        "leaseDurationSeconds": 2147483647,
        "renewTime": "2999-01-01T00:00:00.000000Z",
    }
    leases = "coordination.k8s.io/v1/leases"
    objects.api.create(leases, {"metadata": metadata, "spec": ghost}, NAMESPACE)
    names = [engine.spec(f"job-{number}", script="true") for number in range(8)]
    with EngineProcess(engine, "--leader-elect", "--lease-duration", "3s") as staying:
        for name in names:
            staying.wait_for_line(f"/{name}: Succeeded")


def test_a_server_that_answers_nothing_does_not_hold_up_its_end(
    engine: Engine, sandbox: Sandbox
) -> None:
    with EngineProcess(engine) as staying:
        sandbox.faults.add(Fault(Latency(20.0), times=None))
        sandbox.drop_watches()
        for number in range(10):
            engine.spec(f"job-{number}", script="true", files={"a": "b"})
        staying.wait_for_line("specs read: 10 jobs in 10 files")
        time.sleep(0.5)
        assert staying.stop(signal.SIGTERM).code == 0


def test_a_namespace_that_cannot_be_read_holds_up_nothing_in_the_others(
    engine: Engine, objects: Objects, sandbox: Sandbox
) -> None:
    engine.spec("gone", script="true")
    engine.spec("short", script="true", ttl=600)
    sandbox.deny("list", "*", "closed")
    text = (engine.folder / "gone.yaml").read_text()
    engine.write("closed.yaml", text.replace(f'"{NAMESPACE}"', '"closed"'))
    arguments = ("--prune", "--prune-interval", "1s")
    with EngineProcess(engine, *arguments) as staying:
        staying.wait_for_line("/gone: Succeeded")
        staying.wait_for_line("/short: Succeeded")
        staying.wait_for_line("/api/v1/namespaces/closed/")
        (engine.folder / "gone.yaml").unlink()
        objects.api.wait(lambda: set(engine.status()) == {"short"}, "the removal of one job")
        sandbox.clock.advance(600)
        objects.api.wait(lambda: objects.pods() == [], "the end of what outlived its TTL")


def test_a_spec_in_a_new_namespace_does_not_make_a_ready_engine_unready(
    engine: Engine, sandbox: Sandbox
) -> None:
    sandbox.namespace("late")
    with EngineProcess(engine, "--lease-duration", "15s") as staying:
        slow = sandbox.faults.add(Fault(Latency(3.0), verb="list", namespace="late", times=None))
        engine.spec("job", script="true")
        text = (engine.folder / "job.yaml").read_text()
        engine.write("late.yaml", text.replace(f'"{NAMESPACE}"', '"late"'))
        staying.wait_for_line("/job: Succeeded")
        eventually(lambda: sandbox.faults.hits(slow))
        assert staying.probe("/readyz")[0] == 200
        staying.wait_for_line("late/job: Succeeded")


def test_a_pod_whose_making_was_never_answered_goes_with_its_spec(
    engine: Engine, objects: Objects, sandbox: Sandbox
) -> None:
    engine.spec("stays", script="true")
    with EngineProcess(engine, "--prune", "--prune-interval", "1s") as staying:
        staying.wait_for_line("/stays: Succeeded")
        sandbox.faults.add(Fault(ServerError(503), verb="watch", resource="pods", times=None))
        sandbox.drop_watches()
        sandbox.faults.add(Fault(LostReply(), "create", "pods", "goes-*"))
        sandbox.faults.add(Fault(ServerError(503), "create", "pods", "goes-*", times=None, skip=1))
        engine.spec("goes", script="true")
        objects.api.wait(lambda: len(objects.pods()) == 2, "a pod that the engine knows nothing of")
        (engine.folder / "goes.yaml").unlink()
        staying.wait_for_line("1 removed")
        time.sleep(3)
        sandbox.faults.clear()
        objects.api.wait(lambda: len(objects.pods()) == 1, "the end of its pod", timeout=30)
        objects.api.wait(lambda: set(engine.status()) == {"stays"}, "the end of its record")


def test_a_removal_that_failed_is_tried_again_long_before_the_next_look(
    engine: Engine, objects: Objects, sandbox: Sandbox
) -> None:
    """And costs nothing of the limit of deletes: a pod and a record are all that goes."""
    engine.spec("gone", script="true")
    config = engine.folder.parent / "engine.yaml"
    config.write_text(
        "apiVersion: jobs.engine/v1alpha1\nkind: EngineConfig\nlimits: {maxDeletesPerPass: 2}\n"
    )
    arguments = ("--prune", "--allow-empty", "--prune-interval", "1h", "--config", str(config))
    with EngineProcess(engine, *arguments) as staying:
        staying.wait_for_line("/gone: Succeeded")
        refused = sandbox.faults.add(Fault(ServerError(), "delete", "configmaps", times=3))
        (engine.folder / "gone.yaml").unlink()
        objects.api.wait(lambda: not engine.status(), "the removal of the job")
        assert sandbox.faults.hits(refused) == 3


def test_a_namespace_that_no_spec_names_any_more_is_not_missed(
    engine: Engine, sandbox: Sandbox
) -> None:
    engine.spec("good", script="true")
    sandbox.namespace("closed")
    denied = sandbox.deny("list", "*", "closed")
    text = (engine.folder / "good.yaml").read_text()
    closed = engine.write("closed.yaml", text.replace(f'"{NAMESPACE}"', '"closed"'))
    with EngineProcess(engine) as staying:
        staying.wait_for_line("/good: Succeeded")
        staying.wait_for_line("/api/v1/namespaces/closed/")
        closed.unlink()
        staying.wait_for_line("closed/good: no valid spec any more")
        closed.write_text(text.replace(f'"{NAMESPACE}"', '"closed"'))
        assert staying.probe("/readyz")[0] == 200
        sandbox.allow(denied)
        staying.wait_for_line("closed/good: Succeeded")


def test_a_server_that_forgets_each_version_at_once_is_asked_ever_more_seldom(
    engine: Engine, sandbox: Sandbox
) -> None:
    engine.spec("before", script="true")
    with EngineProcess(engine) as staying:
        staying.wait_for_line("/before: Succeeded")
        sandbox.requests.clear()
        forgets = sandbox.faults.add(Fault(ExpireWatch(), verb="watch", times=None))
        sandbox.drop_watches()
        time.sleep(3)
        eventually(lambda: len(sandbox.requests.where("list")) >= 2)
        assert len(sandbox.requests.where("list")) <= 15
        sandbox.faults.remove(forgets)
        engine.spec("after", script="true")
        staying.wait_for_line("/after: Succeeded")


@pytest.mark.clock(1)
def test_a_second_file_with_its_name_lets_a_run_go_on_and_starts_nothing(
    engine: Engine, objects: Objects, sandbox: Sandbox
) -> None:
    sandbox.node.will(Run(duration=120), pod="build-*")
    engine.spec("build", script="true")
    with EngineProcess(engine, "--prune", "--prune-interval", "1s") as staying:
        wait_for_state(engine, "build", "Running")
        second = engine.write("second.yaml", (engine.folder / "build.yaml").read_text())
        staying.wait_for_line("a second job is named build")
        sandbox.clock.advance(120)
        wait_for_state(engine, "build", "Succeeded")
        time.sleep(3)
        second.unlink()
        staying.wait_for_line("second.yaml: ")
        time.sleep(1)
        assert (len(objects.pods()), list(engine.status())) == (1, ["build"])
