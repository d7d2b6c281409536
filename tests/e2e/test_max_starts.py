"""A limit on new runs: lost records, or a mistyped namespace, start nothing."""

from collections.abc import Callable

import pytest

from engine.sandbox import Sandbox
from tests.support.engine import Engine
from tests.support.engine_process import EngineProcess
from tests.support.objects import Objects

HEAD = "apiVersion: jobs.engine/v1alpha1\nkind: EngineConfig\n"
HINT = "were records deleted, or is this another namespace or --source than before?"


def jobs(engine: Engine, count: int) -> None:
    for number in range(count):
        engine.spec(f"job-{number}", command=["true"])


def lose_records(objects: Objects) -> None:
    """And the pods, as somebody would who empties the namespace."""
    for kind, labels in (("configmaps", "jobs.engine/component=record"), ("pods", None)):
        for item in objects.api.list(kind, objects.namespace, labels=labels):
            name = item["metadata"]["name"]
            objects.api.delete(kind, name, objects.namespace, grace=0 if kind == "pods" else None)
    objects.api.wait(lambda: not objects.pods(), "the end of the pods")


def records(objects: Objects) -> int:
    labels = "jobs.engine/component=record"
    return len(objects.api.list("configmaps", objects.namespace, labels=labels))


def test_lost_records_start_nothing_until_somebody_says_that_it_is_meant(
    engine: Engine, objects: Objects
) -> None:
    jobs(engine, 3)
    engine.reconcile(ends=0)
    lose_records(objects)
    run = engine.reconcile("--max-starts", "2", ends=2)
    names = ", ".join(f"{objects.namespace}/job-{number}" for number in range(3))
    assert (
        "3 jobs would start new runs, --max-starts allows 2: none is started; no record of "
        f"{names} ({HINT} If it is meant: --max-starts 3)"
    ) in run.stderr
    assert (objects.pods(), records(objects)) == ([], 0)
    engine.reconcile("--max-starts", "3", ends=0)
    assert records(objects) == 3


def test_what_is_over_or_under_way_does_not_count(engine: Engine, objects: Objects) -> None:
    jobs(engine, 3)
    engine.reconcile("--max-starts", "3", ends=0)
    engine.reconcile("--max-starts", "0", ends=0)
    engine.spec("job-1", command=["true"], rerun="1")
    engine.spec("new", command=["true"])
    run = engine.reconcile("--max-starts", "1", ends=2)
    where = objects.namespace
    assert f"no record of {where}/new; another spec than in the record of {where}/job-1" in (
        run.stderr
    )
    engine.reconcile("--max-starts", "2", ends=0)


def test_the_operators_limit_holds_unless_the_command_line_says_otherwise(
    engine: Engine, objects: Objects
) -> None:
    config = str(engine.write("../engine.yaml", HEAD + "limits: {maxStarts: 1}\n"))
    jobs(engine, 12)
    said = engine.reconcile("--config", config, ends=2).stderr
    assert "12 jobs would start new runs, limits.maxStarts allows 1" in said
    assert "and 2 more (" in said
    assert objects.pods() == []
    engine.reconcile("--config", config, "--max-starts", "12", ends=0)


def test_a_pod_whose_record_was_deleted_starts_no_new_run(engine: Engine, objects: Objects) -> None:
    jobs(engine, 1)
    engine.reconcile(ends=0)
    before = objects.pod("job-0")["metadata"]["uid"]
    objects.api.delete("configmaps", "job-0.record", objects.namespace)
    assert "is in no record of it" in engine.reconcile("--max-starts", "0", ends=5).stderr
    assert objects.pod("job-0")["metadata"]["uid"] == before


def begun(objects: Objects, count: int) -> Callable[[], bool]:
    return lambda: records(objects) == count


def test_an_engine_that_stays_holds_what_is_too_much_at_once_and_nothing_else(
    engine: Engine, objects: Objects
) -> None:
    config = engine.write("../engine.yaml", HEAD + "limits: {maxStarts: 2}\n")
    jobs(engine, 3)
    with EngineProcess(engine, "--config", str(config)) as running:
        running.wait_for_line("3 jobs would start new runs, limits.maxStarts allows 2", within=60)
        engine.spec("good", command=["true"])
        running.wait_for_line("/good: Succeeded", within=60)
        assert records(objects) == 1
        assert running.metric("engine_held_jobs") == 3
        assert running.text.count("would start") == 1
        config.write_text(HEAD + "limits: {maxStarts: 3}\n", encoding="utf-8")
        objects.api.wait(begun(objects, 4), "the start of what was held")
        running.wait_for_line("/job-0: Succeeded", within=60)
        assert running.metric("engine_held_jobs") == 0
        engine.spec("job-0", command=["true"], rerun="1")
        running.wait_for_line("/job-0: Succeeded", times=2, within=60)


def test_what_is_held_begins_once_there_is_less_of_it(engine: Engine, objects: Objects) -> None:
    jobs(engine, 3)
    with EngineProcess(engine, "--max-starts", "2") as running:
        running.wait_for_line("3 jobs would start new runs, --max-starts allows 2", within=60)
        (engine.folder / "job-2.yaml").unlink()
        objects.api.wait(begun(objects, 2), "the start of what was held")
        assert "job-2: Starting" not in running.text


@pytest.mark.only("sandbox")
def test_a_spec_in_a_namespace_that_can_not_be_read_holds_up_no_other(
    engine: Engine, objects: Objects, sandbox: Sandbox
) -> None:
    sandbox.namespace("closed")
    closed = sandbox.deny("list", "pods", namespace="closed")
    jobs(engine, 2)
    own, engine.namespace = engine.namespace, "closed"
    engine.spec("theirs", command=["true"])
    engine.namespace = own
    with EngineProcess(engine, "--max-starts", "2", ready=False) as running:
        running.wait_for_line("/job-0: Succeeded", within=60)
        running.wait_for_line("/job-1: Succeeded", within=60)
        sandbox.allow(closed)
        running.wait_for_line("closed/theirs: Succeeded", within=60)


def test_records_that_are_lost_under_an_engine_that_stays_start_nothing(
    engine: Engine, objects: Objects
) -> None:
    source = f"lost-{objects.namespace}"
    jobs(engine, 3)
    engine.reconcile("--source", source, ends=0)
    with EngineProcess(engine, "--source", source, "--max-starts", "1") as running:
        for number in range(3):
            running.wait_for_line(f"/job-{number}: Succeeded, unchanged", within=60)
        for pod in objects.pods():
            objects.api.delete("pods", pod["metadata"]["name"], objects.namespace, grace=0)
        objects.api.wait(lambda: not objects.pods(), "the end of the pods")
        lose_records(objects)
        running.wait_for_line("3 jobs would start new runs, --max-starts allows 1", within=60)
        assert running.metric("engine_held_jobs") == 3
        assert (objects.pods(), records(objects)) == ([], 0)
