"""Files dropped, changed, broken, mended and removed while the engine stays."""

import json
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.clusters import ClusterUnderTest
from tests.support.engine import Engine
from tests.support.engine_process import EngineProcess, wait_for_state
from tests.support.objects import Objects


def attempts(engine: Engine, job: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = engine.status()[job]["attempts"]
    return found


@pytest.mark.real
def test_a_file_that_is_dropped_in_becomes_a_run(engine: Engine, objects: Objects) -> None:
    with EngineProcess(engine) as staying:
        engine.spec("dropped", script="true", secrets={"A": {"value": "anything"}})
        staying.wait_for_line("/dropped: Succeeded", within=60)
        assert len(objects.pods()) == 1
        assert wait_for_state(engine, "dropped", "Succeeded")["reason"] == "Succeeded"


def test_a_changed_file_is_a_new_run_and_so_is_one_that_is_changed_back(
    engine: Engine, objects: Objects, target: ClusterUnderTest
) -> None:
    first = target.script("job")
    engine.spec("job", script=first)
    with EngineProcess(engine) as staying:
        staying.wait_for_line("/job: Succeeded", within=60)
        engine.spec("job", script=f"{first}# changed")
        staying.wait_for_line("/job: Succeeded", times=2, within=60)
        engine.spec("job", script=first)
        staying.wait_for_line("/job: Succeeded", times=3, within=60)
    assert len({pod["metadata"]["uid"] for pod in objects.pods()}) == 3


def test_a_broken_file_changes_nothing_until_it_is_mended(
    engine: Engine, objects: Objects, target: ClusterUnderTest
) -> None:
    engine.spec("job", script=target.script("job"))
    good = (engine.folder / "job.yaml").read_text()
    with EngineProcess(engine) as staying:
        staying.wait_for_line("/job: Succeeded", within=60)
        engine.write("job.yaml", good.replace('"spec"', '"spce"'))
        assert "job.yaml:1:" in staying.wait_for_line("spce")
        engine.spec("other", script=target.script("other"))
        staying.wait_for_line("/other: Succeeded", within=60)
        assert staying.metric("engine_spec_problems") > 0
        engine.write("job.yaml", good)
        staying.wait_for_line("job.yaml: fixed")
        time.sleep(0.5)
    assert len(objects.pods()) == 2
    assert staying.text.count("/job: Starting") == 1


def test_a_broken_file_that_is_deleted_is_reported_as_removed_and_not_as_fixed(
    engine: Engine, target: ClusterUnderTest
) -> None:
    engine.spec("job", script=target.script("job"))
    with EngineProcess(engine) as staying:
        engine.write("broken.yaml", "spec: [")
        staying.wait_for_line("broken.yaml:2:")
        (engine.folder / "broken.yaml").unlink()
        staying.wait_for_line("broken.yaml: removed")
    assert "fixed" not in staying.text


def test_a_removed_file_leaves_everything_unless_pruning_was_asked_for(
    engine: Engine, objects: Objects, target: ClusterUnderTest
) -> None:
    engine.spec("stays", script=target.script("stays"))
    engine.spec("runs", script=target.script("runs", lasts=12))
    with EngineProcess(engine) as staying:
        objects.wait_until_running("runs")
        (engine.folder / "runs.yaml").unlink()
        (engine.folder / "stays.yaml").unlink()
        staying.wait_for_line("/runs: Succeeded", within=60)
    assert {name: job["state"] for name, job in engine.status().items()} == {
        "stays": "Succeeded",
        "runs": "Succeeded",
    }
    assert len(objects.pods()) == 2


@pytest.mark.real
def test_with_prune_a_removed_file_takes_its_job_along_and_no_other(
    engine: Engine, objects: Objects, target: ClusterUnderTest
) -> None:
    engine.spec("stays", script=target.script("stays"))
    engine.spec("runs", script=target.script("runs", lasts=300), files={"a": "b"})
    engine.spec("over", script=target.script("over"))
    with EngineProcess(engine, "--prune") as staying:
        objects.wait_until_running("runs")
        staying.wait_for_line("/over: Succeeded", within=60)
        staying.wait_for_line("/stays: Succeeded", within=60)
        (engine.folder / "runs.yaml").unlink()
        (engine.folder / "over.yaml").unlink()
        objects.api.wait(lambda: set(engine.status()) == {"stays"}, "the removal of two jobs")
        objects.api.wait(lambda: len(objects.pods()) == 1, "the removal of their pods")
        engine.spec("over", script=target.script("over"))
        staying.wait_for_line("/over: Succeeded", times=2, within=60)


def test_with_prune_a_folder_that_is_emptied_or_gone_removes_nothing(
    engine: Engine, objects: Objects, target: ClusterUnderTest
) -> None:
    engine.spec("job", script=target.script("job"))
    with EngineProcess(engine, "--prune") as staying:
        staying.wait_for_line("/job: Succeeded", within=60)
        aside = engine.folder.rename(engine.folder.with_name("aside"))
        staying.wait_for_line("stay in force")
        assert "[-]directory" in staying.wait_for_probe("/readyz", 503)
        aside.rename(engine.folder)
        staying.wait_until_ready()
        (engine.folder / "job.yaml").unlink()
        staying.wait_for_line("there are no specs at all")
    assert set(engine.status()) == {"job"}
    assert len(objects.pods()) == 1


def test_with_prune_nothing_is_removed_while_a_file_is_broken(
    engine: Engine, objects: Objects, target: ClusterUnderTest
) -> None:
    engine.spec("moves", script=target.script("moves"))
    engine.spec("other", script=target.script("other"))
    text = (engine.folder / "moves.yaml").read_text()
    with EngineProcess(engine, "--prune") as staying:
        staying.wait_for_line("/moves: Succeeded", within=60)
        staying.wait_for_line("/other: Succeeded", within=60)
        other = (engine.folder / "other.yaml").read_text()
        engine.write("other.yaml", f"{other}\n---\n{text.replace('spec', 'spce')}")
        staying.wait_for_line("other.yaml:")
        (engine.folder / "moves.yaml").unlink()
        staying.wait_for_line("nothing is removed: not every spec can be read")
        engine.write("other.yaml", f"{other}\n---\n{text}")
        staying.wait_for_line("other.yaml: fixed")
        time.sleep(3)
    assert set(engine.status()) == {"moves", "other"}
    assert len(objects.pods()) == 2


def test_a_file_that_is_missing_for_a_moment_is_not_removed(
    engine: Engine, objects: Objects, target: ClusterUnderTest
) -> None:
    engine.spec("job", script=target.script("job", lasts=12))
    engine.spec("other", script=target.script("other"))
    text = (engine.folder / "job.yaml").read_text()
    with EngineProcess(engine, "--prune") as staying:
        uid = objects.wait_until_running("job")["metadata"]["uid"]
        (engine.folder / "job.yaml").unlink()
        staying.wait_for_line("1 removed")
        engine.write("job.yaml", text)
        staying.wait_for_line("/job: Succeeded", within=60)
    assert objects.pod("job")["metadata"]["uid"] == uid


def test_an_mv_over_a_file_is_one_new_run(
    engine: Engine, objects: Objects, target: ClusterUnderTest, tmp_path: Path
) -> None:
    engine.spec("job", script=target.script("job"))
    with EngineProcess(engine) as staying:
        staying.wait_for_line("/job: Succeeded", within=60)
        text = (engine.folder / "job.yaml").read_text().replace('"script": "', '"script": "true\\n')
        fresh = tmp_path / "fresh"
        fresh.write_text(text)
        fresh.rename(engine.folder / "job.yaml")
        staying.wait_for_line("/job: Succeeded", times=2, within=60)
        time.sleep(1)
    assert len(objects.pods()) == 2


def test_the_swap_of_a_mounted_config_map_is_one_new_run_for_each_changed_file(
    engine: Engine, objects: Objects, target: ClusterUnderTest
) -> None:
    for name in ("changes", "same"):
        engine.spec(name, file=f"..one/{name}.yaml", script=target.script(name))
        engine.spec(name, file=f"..two/{name}.yaml", script=target.script(name))
        (engine.folder / f"{name}.yaml").symlink_to(f"..data/{name}.yaml")
    engine.spec("changes", file="..two/changes.yaml", script=target.script("changes") + "# new")
    (engine.folder / "..data").symlink_to("..one")
    with EngineProcess(engine) as staying:
        staying.wait_for_line("/changes: Succeeded", within=60)
        staying.wait_for_line("/same: Succeeded", within=60)
        (engine.folder / "..data_tmp").symlink_to("..two")
        (engine.folder / "..data_tmp").rename(engine.folder / "..data")
        staying.wait_for_line("/changes: Succeeded", times=2, within=60)
        time.sleep(1)
    assert len(objects.pods()) == 3


def test_sigterm_ends_it_in_time_and_what_runs_is_taken_up_by_the_next(
    engine: Engine, objects: Objects, target: ClusterUnderTest
) -> None:
    engine.spec("long", script=target.script("long", lasts=18))
    with EngineProcess(engine) as first:
        uid = objects.wait_until_running("long")["metadata"]["uid"]
        ended = first.stop(signal.SIGTERM)
    assert ended.code == 0, ended.stderr
    with EngineProcess(engine) as second:
        second.wait_for_line("/long: Succeeded", within=60)
    (attempt,) = attempts(engine, "long")
    assert attempt["uid"] == uid
    assert len(objects.pods()) == 1


def test_ctrl_c_ends_it_with_the_exit_code_of_an_interrupt(engine: Engine) -> None:
    with EngineProcess(engine) as staying:
        assert staying.stop(signal.SIGINT).code == 130
    assert "Traceback" not in staying.text


@pytest.mark.real
def test_jobs_in_every_state_are_taken_up_after_a_kill_and_none_runs_twice(
    engine: Engine, objects: Objects, target: ClusterUnderTest
) -> None:
    engine.spec("over", script=target.script("over"))
    engine.spec("fails", script=target.script("fails", ends=3))
    engine.spec("runs", script=target.script("runs", lasts=24), files={"a": "b"})
    engine.spec("pending", script="true", nodeSelector={"no": "such-node"})
    with EngineProcess(engine) as first:
        first.wait_for_line("/over: Succeeded", within=60)
        first.wait_for_line("/fails: Failed", within=60)
        objects.wait_until_running("runs")
        objects.api.wait(lambda: len(objects.pods()) == 4, "four pods")
        before = {pod["metadata"]["uid"] for pod in objects.pods()}
        first.kill()
    engine.spec("late", script=target.script("late"))
    with EngineProcess(engine) as second:
        second.wait_for_line("/runs: Succeeded", within=60)
        second.wait_for_line("/late: Succeeded", within=60)
    after = {pod["metadata"]["uid"] for pod in objects.pods()}
    assert before < after
    assert len(after) == 5
    assert {len(job["attempts"]) for job in engine.status().values()} == {1}


def test_cancel_and_rerun_reach_an_engine_that_stays(
    engine: Engine, objects: Objects, target: ClusterUnderTest
) -> None:
    engine.spec("job", script=target.script("job", lasts=300))
    with EngineProcess(engine) as staying:
        objects.wait_until_running("job")
        engine.run("cancel", "job", "-n", engine.namespace, ends=0)
        wait_for_state(engine, "job", "Cancelled")
        objects.api.wait(lambda: objects.pods() == [], "the end of its pod")
        engine.run("rerun", "job", "-n", engine.namespace, ends=0)
        objects.wait_until_running("job")
        staying.wait_for_line("/job: Running", times=2)


def test_a_second_engine_of_a_source_is_told_who_leads_it(engine: Engine) -> None:
    lease = ("--lease-duration", "6s")
    with (
        EngineProcess(engine, *lease) as first,
        EngineProcess(engine, *lease, ready=False) as second,
    ):
        refused = second.wait(60)
        assert refused.code == 5
        assert str(first.process.pid) in refused.stderr.splitlines()[-1]
        assert first.probe("/readyz")[0] == 200


def test_engines_share_the_jobs_of_a_source_and_go_on_without_one_that_is_killed(
    engine: Engine, objects: Objects, target: ClusterUnderTest
) -> None:
    def spec(name: str, **more: Any) -> str:
        return engine.spec(name, script=target.script(name, **more))

    with EngineProcess(engine, "--leader-elect") as first:
        with EngineProcess(engine, "--leader-elect") as second:
            second.wait_for_line("is shared by 2 engines")
            first.wait_for_line("is shared by 2 engines")
            names = [spec(f"job-{number}") for number in range(12)]
            for name in names:
                wait_for_state(engine, name, "Succeeded")
            lasting = [spec(f"lasting-{number}", lasts=60) for number in range(10)]
            for name in lasting:
                objects.wait_until_running(name)
            engines = {job["engine"] for job in engine.status().values() if job["engine"]}
            assert len(engines) == 2
            table = engine.run("status", "-n", engine.namespace, "-o", "wide", ends=0)
            assert all(name in table.stdout and name in table.stderr for name in engines)
            second.kill()
        engine.run("cancel", *lasting, "-n", engine.namespace, ends=0)
        for name in lasting:
            first.wait_for_line(f"/{name}: Cancelled")
        assert "this engine's alone" in first.wait_for_line("this engine's alone")
        after = [spec(f"after-{number}") for number in range(4)]
        for name in after:
            first.wait_for_line(f"/{name}: Succeeded")
    both = [
        {name for name in names if f"/{name}: Succeeded" in one.text} for one in (first, second)
    ]
    assert both[0] | both[1] == {*names}
    assert both[0]
    assert both[1]
    assert both[0] != both[1], "each took every job"
    assert all(len(job["attempts"]) == 1 for job in engine.status().values())


def test_what_outlived_its_ttl_is_pruned_and_not_run_again(
    engine: Engine, objects: Objects, target: ClusterUnderTest
) -> None:
    ttl = {"success": 3}
    engine.spec("short", script=target.script("short"), ttlAfterFinished=ttl, files={"a": "b"})
    with EngineProcess(engine, "--prune-interval", "1s") as staying:
        staying.wait_for_line("/short: Succeeded", within=60)
        objects.api.wait(lambda: objects.pods() == [], "the end of its pod")
        objects.wait_until_clean()
        time.sleep(2)
        assert objects.pods() == []
    assert engine.status()["short"]["state"] == "Succeeded"
    assert staying.text.count("/short: Starting") == 1


def test_a_job_that_outlives_its_ttl_while_it_runs_is_told_to_have_been_pruned(
    engine: Engine, objects: Objects, target: ClusterUnderTest
) -> None:
    engine.spec("long", script=target.script("long", lasts=300), ttl=3)
    with EngineProcess(engine, "--prune-interval", "1s") as staying:
        line = staying.wait_for_line("/long: Cancelled", within=60)
        assert "pruned before it had finished: ttl 3s" in line
        objects.wait_until_clean()
        assert "unchanged" not in staying.text
    assert engine.status()["long"]["state"] == "Cancelled"


def test_an_end_that_another_hand_wrote_down_is_told_once_with_its_cause_and_counted(
    engine: Engine, target: ClusterUnderTest, limit: Callable[..., object]
) -> None:
    for job in ("long", "removed"):
        engine.spec(job, script=target.script(job, lasts=300))
    space = engine.namespace
    with EngineProcess(engine) as staying:
        for job in ("long", "removed"):
            staying.wait_for_line(f"/{job}: Running", within=60)
        limit({"pods": "2"})
        (engine.folder / "removed.yaml").unlink()
        engine.spec("queued", script=target.script("queued"))
        staying.wait_for_line("/queued: Queued")
        engine.run("complete", f"{space}/queued", "--reason", "it ran elsewhere", ends=0)
        assert "it ran elsewhere" in staying.wait_for_line("/queued: Succeeded")
        for job in ("long", "removed"):
            engine.run("cancel", f"{space}/{job}", "--reason", "wrong branch", ends=0)
            assert "wrong branch" in staying.wait_for_line(f"/{job}: Cancelled")
        for reason, count in (("Cancelled", 2), ("Succeeded", 1)):
            assert staying.metric(f'engine_outcomes_total{{reason="{reason}"}}') == count
        staying.stop()
        for end in ("queued: Succeeded", "long: Cancelled", "removed: Cancelled"):
            assert staying.text.count(f"/{end}") == 1


def test_another_configuration_holds_from_the_moment_it_is_written(
    engine: Engine, objects: Objects, target: ClusterUnderTest, tmp_path: Path
) -> None:
    config = tmp_path / "engine.yaml"

    def write(longest: str) -> None:
        document = {
            "apiVersion": "jobs.engine/v1alpha1",
            "kind": "EngineConfig",
            "limits": {"maxTimeout": longest},
        }
        config.write_text(json.dumps(document))

    def deadline(job: str) -> object:
        return objects.pod(job)["spec"].get("activeDeadlineSeconds")

    write("90s")
    engine.spec("first", script=target.script("first"))
    with EngineProcess(engine, "--config", str(config)) as staying:
        staying.wait_for_line("/first: Succeeded", within=60)
        write("50s")
        staying.wait_for_line("specs read", times=2)
        engine.spec("second", script=target.script("second"))
        staying.wait_for_line("/second: Succeeded", within=60)
        assert (deadline("first"), deadline("second")) == (90, 50)
        config.write_text("{")
        staying.wait_for_line("engine.yaml:")
        staying.send(signal.SIGHUP)
        staying.wait_for_line("reading configuration")
        engine.spec("third", script=target.script("third"))
        staying.wait_for_line("/third: Succeeded", within=60)
        assert deadline("third") == 50
    assert len(objects.pods()) == 3
