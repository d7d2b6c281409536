"""Files dropped, changed, broken, mended and removed while the engine stays."""

import json
import signal
import time
from pathlib import Path
from typing import Any

from tests.both.conftest import World
from tests.e2e.harness import Engine
from tests.e2e.objects import Objects
from tests.e2e.staying import Staying, wait_for_state


def attempts(engine: Engine, job: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = engine.status()[job]["attempts"]
    return found


def test_a_file_that_is_dropped_in_becomes_a_run(engine: Engine, objects: Objects) -> None:
    with Staying(engine) as staying:
        engine.spec("dropped", script="true", secrets={"A": {"value": "anything"}})
        staying.hears("/dropped: Succeeded", within=60)
        assert len(objects.pods()) == 1
        assert wait_for_state(engine, "dropped", "Succeeded")["reason"] == "Succeeded"


def test_a_changed_file_is_a_new_run_and_so_is_one_that_is_changed_back(
    engine: Engine, objects: Objects, world: World
) -> None:
    first = world.plays("job")
    engine.spec("job", script=first)
    with Staying(engine) as staying:
        staying.hears("/job: Succeeded", within=60)
        engine.spec("job", script=f"{first}# changed")
        staying.hears("/job: Succeeded", times=2, within=60)
        engine.spec("job", script=first)
        staying.hears("/job: Succeeded", times=3, within=60)
    assert len({pod["metadata"]["uid"] for pod in objects.pods()}) == 3


def test_a_broken_file_changes_nothing_until_it_is_mended(
    engine: Engine, objects: Objects, world: World
) -> None:
    engine.spec("job", script=world.plays("job"))
    good = (engine.folder / "job.yaml").read_text()
    with Staying(engine) as staying:
        staying.hears("/job: Succeeded", within=60)
        engine.write("job.yaml", good.replace('"spec"', '"spce"'))
        assert "job.yaml:1:" in staying.hears("spce")
        engine.spec("other", script=world.plays("other"))
        staying.hears("/other: Succeeded", within=60)
        assert staying.metric("engine_spec_problems") > 0
        engine.write("job.yaml", good)
        staying.hears("job.yaml: mended")
        time.sleep(0.5)
    assert len(objects.pods()) == 2
    assert staying.text.count("/job: Starting") == 1


def test_a_removed_file_leaves_everything_unless_pruning_was_asked_for(
    engine: Engine, objects: Objects, world: World
) -> None:
    engine.spec("stays", script=world.plays("stays"))
    engine.spec("runs", script=world.plays("runs", lasts=4))
    with Staying(engine) as staying:
        objects.wait_until_running("runs")
        (engine.folder / "runs.yaml").unlink()
        (engine.folder / "stays.yaml").unlink()
        staying.hears("/runs: Succeeded", within=60)
    assert {name: job["state"] for name, job in engine.status().items()} == {
        "stays": "Succeeded",
        "runs": "Succeeded",
    }
    assert len(objects.pods()) == 2


def test_with_prune_a_removed_file_takes_its_job_along_and_no_other(
    engine: Engine, objects: Objects, world: World
) -> None:
    engine.spec("stays", script=world.plays("stays"))
    engine.spec("runs", script=world.plays("runs", lasts=300), files={"a": "b"})
    engine.spec("over", script=world.plays("over"))
    with Staying(engine, "--prune") as staying:
        objects.wait_until_running("runs")
        staying.hears("/over: Succeeded", within=60)
        staying.hears("/stays: Succeeded", within=60)
        (engine.folder / "runs.yaml").unlink()
        (engine.folder / "over.yaml").unlink()
        objects.api.wait(lambda: set(engine.status()) == {"stays"}, "the removal of two jobs")
        objects.api.wait(lambda: len(objects.pods()) == 1, "the removal of their pods")
        engine.spec("over", script=world.plays("over"))
        staying.hears("/over: Succeeded", times=2, within=60)


def test_with_prune_a_folder_that_is_emptied_or_gone_removes_nothing(
    engine: Engine, objects: Objects, world: World
) -> None:
    engine.spec("job", script=world.plays("job"))
    with Staying(engine, "--prune") as staying:
        staying.hears("/job: Succeeded", within=60)
        aside = engine.folder.rename(engine.folder.with_name("aside"))
        staying.hears("stays in force")
        assert "[-]directory" in staying.wait_for_probe("/readyz", 503)
        aside.rename(engine.folder)
        staying.wait_until_ready()
        (engine.folder / "job.yaml").unlink()
        staying.hears("there are no specs at all")
    assert set(engine.status()) == {"job"}
    assert len(objects.pods()) == 1


def test_with_prune_nothing_is_removed_while_a_file_is_broken(
    engine: Engine, objects: Objects, world: World
) -> None:
    engine.spec("moves", script=world.plays("moves"))
    engine.spec("other", script=world.plays("other"))
    text = (engine.folder / "moves.yaml").read_text()
    with Staying(engine, "--prune") as staying:
        staying.hears("/moves: Succeeded", within=60)
        staying.hears("/other: Succeeded", within=60)
        other = (engine.folder / "other.yaml").read_text()
        engine.write("other.yaml", f"{other}\n---\n{text.replace('spec', 'spce')}")
        staying.hears("other.yaml:")
        (engine.folder / "moves.yaml").unlink()
        staying.hears("nothing is removed: not every spec can be read")
        engine.write("other.yaml", f"{other}\n---\n{text}")
        staying.hears("other.yaml: mended")
        time.sleep(3)
    assert set(engine.status()) == {"moves", "other"}
    assert len(objects.pods()) == 2


def test_a_file_that_is_missing_for_a_moment_is_not_removed(
    engine: Engine, objects: Objects, world: World
) -> None:
    engine.spec("job", script=world.plays("job", lasts=6))
    engine.spec("other", script=world.plays("other"))
    text = (engine.folder / "job.yaml").read_text()
    with Staying(engine, "--prune") as staying:
        uid = objects.wait_until_running("job")["metadata"]["uid"]
        (engine.folder / "job.yaml").unlink()
        staying.hears("1 removed")
        engine.write("job.yaml", text)
        staying.hears("/job: Succeeded", within=60)
    assert objects.pod("job")["metadata"]["uid"] == uid


def test_an_mv_over_a_file_is_one_new_run(
    engine: Engine, objects: Objects, world: World, tmp_path: Path
) -> None:
    engine.spec("job", script=world.plays("job"))
    with Staying(engine) as staying:
        staying.hears("/job: Succeeded", within=60)
        text = (engine.folder / "job.yaml").read_text().replace('"script": "', '"script": "true\\n')
        fresh = tmp_path / "fresh"
        fresh.write_text(text)
        fresh.rename(engine.folder / "job.yaml")
        staying.hears("/job: Succeeded", times=2, within=60)
        time.sleep(1)
    assert len(objects.pods()) == 2


def test_the_swap_of_a_mounted_config_map_is_one_new_run_for_each_changed_file(
    engine: Engine, objects: Objects, world: World
) -> None:
    for name in ("changes", "same"):
        engine.spec(name, file=f"..one/{name}.yaml", script=world.plays(name))
        engine.spec(name, file=f"..two/{name}.yaml", script=world.plays(name))
        (engine.folder / f"{name}.yaml").symlink_to(f"..data/{name}.yaml")
    engine.spec("changes", file="..two/changes.yaml", script=world.plays("changes") + "# new")
    (engine.folder / "..data").symlink_to("..one")
    with Staying(engine) as staying:
        staying.hears("/changes: Succeeded", within=60)
        staying.hears("/same: Succeeded", within=60)
        (engine.folder / "..data_tmp").symlink_to("..two")
        (engine.folder / "..data_tmp").rename(engine.folder / "..data")
        staying.hears("/changes: Succeeded", times=2, within=60)
        time.sleep(1)
    assert len(objects.pods()) == 3


def test_sigterm_ends_it_in_time_and_what_runs_is_taken_up_by_the_next(
    engine: Engine, objects: Objects, world: World
) -> None:
    engine.spec("long", script=world.plays("long", lasts=8))
    with Staying(engine) as first:
        uid = objects.wait_until_running("long")["metadata"]["uid"]
        began = time.monotonic()
        ended = first.stop(signal.SIGTERM)
        assert time.monotonic() - began < 10
    assert ended.code == 0, ended.stderr
    with Staying(engine) as second:
        second.hears("/long: Succeeded", within=60)
    (attempt,) = attempts(engine, "long")
    assert attempt["uid"] == uid
    assert len(objects.pods()) == 1


def test_ctrl_c_ends_it_with_the_exit_code_of_an_interrupt(engine: Engine) -> None:
    with Staying(engine) as staying:
        assert staying.stop(signal.SIGINT).code == 130
    assert "Traceback" not in staying.text


def test_jobs_in_every_state_are_taken_up_after_a_kill_and_none_runs_twice(
    engine: Engine, objects: Objects, world: World
) -> None:
    engine.spec("over", script=world.plays("over"))
    engine.spec("fails", script=world.plays("fails", ends=3))
    engine.spec("runs", script=world.plays("runs", lasts=6), files={"a": "b"})
    engine.spec("pending", script="true", nodeSelector={"no": "such-node"})
    with Staying(engine) as first:
        first.hears("/over: Succeeded", within=60)
        first.hears("/fails: Failed", within=60)
        objects.wait_until_running("runs")
        objects.api.wait(lambda: len(objects.pods()) == 4, "four pods")
        before = {pod["metadata"]["uid"] for pod in objects.pods()}
        first.kill()
    engine.spec("late", script=world.plays("late"))
    with Staying(engine) as second:
        second.hears("/runs: Succeeded", within=60)
        second.hears("/late: Succeeded", within=60)
    after = {pod["metadata"]["uid"] for pod in objects.pods()}
    assert before < after
    assert len(after) == 5
    assert {len(job["attempts"]) for job in engine.status().values()} == {1}


def test_cancel_and_rerun_reach_an_engine_that_stays(
    engine: Engine, objects: Objects, world: World
) -> None:
    engine.spec("job", script=world.plays("job", lasts=300))
    with Staying(engine) as staying:
        objects.wait_until_running("job")
        assert engine.run("cancel", "job", "-n", engine.namespace).code == 0
        wait_for_state(engine, "job", "Cancelled")
        objects.api.wait(lambda: objects.pods() == [], "the end of its pod")
        assert engine.run("rerun", "job", "-n", engine.namespace).code == 0
        objects.wait_until_running("job")
        staying.hears("/job: Running", times=2)


def test_a_second_engine_of_a_source_is_told_who_leads_it(engine: Engine) -> None:
    with Staying(engine) as first, Staying(engine, ready=False) as second:
        refused = second.wait(20)
        assert refused.code == 5
        assert str(first.process.pid) in refused.stderr.splitlines()[-1]
        assert first.probe("/readyz")[0] == 200


def test_an_engine_that_stands_by_takes_over_when_the_leader_ends(
    engine: Engine, objects: Objects, world: World
) -> None:
    with Staying(engine) as first, Staying(engine, "--leader-elect") as second:
        second.hears("standing by")
        assert second.metric("engine_leader") == 0
        engine.spec("before", script=world.plays("before"))
        first.hears("/before: Succeeded", within=60)
        assert first.stop().code == 0
        engine.spec("after", script=world.plays("after"))
        second.hears("/after: Succeeded", within=60)
        assert second.metric("engine_leader") == 1
    assert len(objects.pods()) == 2


def test_what_outlived_its_ttl_is_pruned_and_not_run_again(
    engine: Engine, objects: Objects, world: World
) -> None:
    engine.spec("short", script=world.plays("short"), ttl=3, files={"a": "b"})
    with Staying(engine, "--prune-interval", "1s") as staying:
        staying.hears("/short: Succeeded", within=60)
        objects.api.wait(lambda: objects.pods() == [], "the end of its pod")
        objects.wait_until_clean()
        time.sleep(2)
        assert objects.pods() == []
    assert engine.status()["short"]["state"] == "Succeeded"
    assert staying.text.count("/short: Starting") == 1


def test_another_configuration_holds_from_the_moment_it_is_written(
    engine: Engine, objects: Objects, world: World, tmp_path: Path
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
    engine.spec("first", script=world.plays("first"))
    with Staying(engine, "--config", str(config)) as staying:
        staying.hears("/first: Succeeded", within=60)
        write("50s")
        staying.hears("specs read", times=2)
        engine.spec("second", script=world.plays("second"))
        staying.hears("/second: Succeeded", within=60)
        assert (deadline("first"), deadline("second")) == (90, 50)
        config.write_text("{")
        staying.hears("engine.yaml:")
        staying.send(signal.SIGHUP)
        staying.hears("reading configuration")
        engine.spec("third", script=world.plays("third"))
        staying.hears("/third: Succeeded", within=60)
        assert deadline("third") == 50
    assert len(objects.pods()) == 3
