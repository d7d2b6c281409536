"""What must be safe before a job's pod is pruned, and what goes with it."""

import pytest

from engine.sandbox import FOREVER, Fault, Run, Sandbox
from engine.sandbox.faults import Conflict
from tests.support.clusters import NAMESPACE
from tests.support.engine import CommandResult, Engine
from tests.support.objects import Objects

pytestmark = pytest.mark.only("sandbox")

DAY = 86_400


def prune(engine: Engine, *arguments: str) -> CommandResult:
    return engine.run("prune", "-n", NAMESPACE, "-o", "json", *arguments)


def by_kind(run: CommandResult, action: str) -> list[str]:
    return sorted(e["kind"] for e in run.result["pruned"] if e["action"] == action)


def start(engine: Engine, name: str = "job") -> None:
    """Leave the job with its record open, as an engine that died does; its pod may run on."""
    engine.spec(name, script="true", secrets={"A": {"value": "anything"}})
    engine.reconcile("--wait", "applied", ends=0)


def let_expire(objects: Objects, job: str = "job") -> str:
    name = str(objects.pod(job)["metadata"]["name"])
    patch = {"metadata": {"annotations": {"jobs.engine/ttl": "0"}}}
    objects.api.patch("pods", name, patch, NAMESPACE)
    return name


def test_a_pod_whose_outcome_cannot_be_recorded_stays(
    engine: Engine, sandbox: Sandbox, objects: Objects
) -> None:
    start(engine)
    objects.wait_until_over("job")
    sandbox.clock.advance(DAY)
    sandbox.deny("update", "configmaps")
    run = prune(engine)
    assert run.code == 1
    (entry,) = [e for e in run.result["pruned"] if e["action"] == "failed"]
    assert entry["reason"].startswith("its outcome could not be recorded: ")
    assert len(objects.pods()) == 1


def test_a_record_that_somebody_else_writes_meanwhile_is_read_again(
    engine: Engine, sandbox: Sandbox, objects: Objects
) -> None:
    start(engine)
    objects.wait_until_over("job")
    sandbox.clock.advance(DAY)
    sandbox.faults.add(Fault(Conflict(), verb="update", resource="configmaps", times=2))
    assert prune(engine).code == 0
    assert engine.status()["job"]["state"] == "Succeeded"


def test_a_running_pod_that_may_not_be_deleted_is_not_called_cancelled(
    engine: Engine, sandbox: Sandbox, objects: Objects
) -> None:
    sandbox.node.will(Run(duration=FOREVER), container="main")
    start(engine)
    objects.wait_until_running("job")
    let_expire(objects)
    sandbox.clock.advance(5)
    sandbox.deny("delete", "pods")
    assert prune(engine).code == 1
    assert engine.status()["job"]["state"] in ("Starting", "Running")


def test_many_pods_cost_one_read_of_the_records_not_one_each(
    engine: Engine, sandbox: Sandbox
) -> None:
    for number in range(60):
        engine.spec(f"job-{number}", script="true")
    engine.reconcile(ends=0)
    sandbox.clock.advance(DAY)
    sandbox.requests.clear()
    run = prune(engine)
    assert by_kind(run, "deleted") == ["Pod"] * 60
    assert len(sandbox.requests.where("get", "configmaps")) <= 20
    assert len(sandbox.requests.where("list", "configmaps")) == 2
    assert sandbox.objects("pods", NAMESPACE) == []


def test_what_a_living_pod_owns_is_kept_even_if_pods_are_not_looked_at(
    engine: Engine, sandbox: Sandbox, objects: Objects
) -> None:
    sandbox.node.will(Run(duration=FOREVER), container="main")
    start(engine)
    sandbox.clock.advance(1200)
    run = prune(engine, "--kinds", "secrets,configmaps")
    assert (run.code, by_kind(run, "kept")) == (0, ["ConfigMap", "Secret"])
    assert len(objects.owned()) == 2


def test_no_mark_on_what_a_living_pod_owns_takes_it_from_the_pod(
    engine: Engine, sandbox: Sandbox, objects: Objects
) -> None:
    sandbox.node.will(Run(duration=FOREVER), container="main")
    start(engine)
    objects.wait_until_running("job")
    marks = {"jobs.engine/ttl": "0", "janitor/ttl": "1", "cleaner.kubernetes.gitlab.org/ttl": "1"}
    for owned in objects.owned():
        resource, _, name = owned.partition("/")
        objects.api.patch(resource, name, {"metadata": {"annotations": marks}}, NAMESPACE)
    sandbox.clock.advance(5)
    run = prune(engine, "--annotation", "janitor/ttl")
    assert (run.code, by_kind(run, "deleted")) == (0, [])
    assert len(objects.owned()) == 2


def test_another_cleaners_mark_on_a_pod_of_the_engine_neither_ends_nor_keeps_it(
    engine: Engine, sandbox: Sandbox, objects: Objects
) -> None:
    start(engine)
    name = str(objects.pod("job")["metadata"]["name"])
    for mark in ("1", "soon", "forever"):
        annotations = dict.fromkeys(("janitor/ttl", "cleaner.kubernetes.gitlab.org/ttl"), mark)
        objects.api.patch("pods", name, {"metadata": {"annotations": annotations}}, NAMESPACE)
        run = prune(engine, "--annotation", "janitor/ttl")
        assert (run.code, by_kind(run, "deleted")) == (0, [])
        assert "Pod" in by_kind(run, "kept")
    sandbox.clock.advance(DAY)
    assert by_kind(prune(engine), "deleted") == ["Pod"]


def test_a_record_is_never_pruned_whatever_its_annotations(
    engine: Engine, sandbox: Sandbox, objects: Objects
) -> None:
    engine.spec("job", script="true")
    engine.reconcile(ends=0)
    patch = {"metadata": {"annotations": {"jobs.engine/ttl": "1"}}}
    objects.api.patch("configmaps", "job.record", patch, NAMESPACE)
    sandbox.clock.advance(DAY)
    prune(engine)
    assert sandbox.get("configmaps", NAMESPACE, "job.record") is not None
