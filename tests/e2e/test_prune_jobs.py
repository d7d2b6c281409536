"""What must be safe before a job's pod is pruned, and what goes with it."""

from pathlib import Path

import pytest

from engine.sandbox import FOREVER, Fault, Run, Sandbox
from engine.sandbox.faults import Conflict, ServerError
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


def test_logs_are_saved_before_the_pod_goes(
    engine: Engine, sandbox: Sandbox, objects: Objects, tmp_path: Path
) -> None:
    sandbox.node.will(Run(log=("first", "zweite Zeile ü")), container="main")
    engine.spec("job", script="true", initContainers=[{"name": "prepare", "image": engine.image}])
    engine.reconcile(ends=0)
    name = objects.pod("job")["metadata"]["name"]
    sandbox.clock.advance(DAY)
    run = prune(engine, "--logs-dir", str(tmp_path / "logs"))
    assert run.code == 0, run.stderr
    folder = tmp_path / "logs" / NAMESPACE / name
    assert sorted(path.name for path in folder.iterdir()) == ["main.log", "prepare.log"]
    assert (folder / "main.log").read_text(encoding="utf-8") == "first\nzweite Zeile ü\n"
    assert objects.pods() == []


def test_a_pod_whose_log_cannot_be_saved_stays_and_is_reported(
    engine: Engine, sandbox: Sandbox, objects: Objects, tmp_path: Path
) -> None:
    engine.spec("job", script="true")
    engine.reconcile(ends=0)
    sandbox.clock.advance(DAY)
    fault = Fault(ServerError(500, "no kubelet"), verb="get", resource="pods/log", times=None)
    sandbox.faults.add(fault)
    run = prune(engine, "--logs-dir", str(tmp_path / "logs"))
    assert run.code == 1
    (entry,) = [e for e in run.result["pruned"] if e["action"] == "failed"]
    assert entry["reason"] == "its log could not be saved: main: no kubelet"
    assert len(objects.pods()) == 1
    assert [p for p in (tmp_path / "logs").rglob("*") if p.is_file()] == []


def test_what_is_in_the_way_of_a_log_is_named_in_words(
    engine: Engine, sandbox: Sandbox, objects: Objects, tmp_path: Path
) -> None:
    engine.spec("job", script="true")
    engine.reconcile(ends=0)
    sandbox.clock.advance(DAY)
    logs = tmp_path / "logs"
    logs.mkdir()

    def cause() -> str:
        run = prune(engine, "--logs-dir", str(logs))
        (entry,) = [e for e in run.result["pruned"] if e["action"] == "failed"]
        return str(entry["reason"]).removeprefix("its log could not be saved: main: ")

    a_file = logs / NAMESPACE
    a_file.touch()
    of_pod = a_file / objects.pod("job")["metadata"]["name"]
    assert cause() == f"not a directory: {of_pod}"
    a_file.unlink()
    a_folder = of_pod / "main.log"
    a_folder.mkdir(parents=True)
    assert cause() == f"is a directory: {a_folder}"
    assert [*a_folder.parent.iterdir()] == [a_folder]


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
