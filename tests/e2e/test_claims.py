"""What a file or a link that turns up in the folder can't do to the jobs that are there."""

import time

import pytest

from engine.sandbox import FOREVER, Run, Sandbox
from tests.support.engine import Engine
from tests.support.engine_process import EngineProcess
from tests.support.objects import Objects

pytestmark = pytest.mark.only("sandbox")

PRUNE = ("--prune", "--source", "web")
GRACE = 5.0
"""Seconds in which an engine that stays would long have removed a job, or started one."""


def claim(engine: Engine, name: str) -> None:
    """Another file, first in order, with the job's name and an image of its own."""
    text = (engine.folder / f"{name}.yaml").read_text()
    engine.write("a/first.yaml", text.replace(engine.image, "evil.example/x"))


@pytest.mark.parametrize("staying", [False, True])
def test_no_second_file_takes_a_finished_job_over_at_a_restart(
    engine: Engine, objects: Objects, *, staying: bool
) -> None:
    engine.spec("build", script="true")
    engine.reconcile("--source", "web", ends=0)
    before = engine.status()
    claim(engine, "build")
    if staying:
        with EngineProcess(engine, *PRUNE, "--prune-interval", "1s") as running:
            running.wait_for_line("another job is named build")
            running.wait_for_line("a second job is named build")
            time.sleep(GRACE)
    else:
        said = engine.reconcile(*PRUNE, ends=2)
        assert "a/first.yaml:1:" in said.stderr
        assert "/build.yaml:1:" in said.stderr
    assert (engine.status(), len(objects.pods())) == (before, 1)


@pytest.mark.parametrize("staying", [False, True])
def test_no_second_file_starts_prunes_or_cancels_what_is_under_way_at_a_restart(
    engine: Engine, objects: Objects, sandbox: Sandbox, *, staying: bool
) -> None:
    sandbox.node.will(Run(duration=FOREVER), pod="build-*")
    engine.spec("build", script="true")
    engine.reconcile("--source", "web", "--wait", "applied", ends=0)
    pod = objects.wait_until_running("build")
    claim(engine, "build")
    if staying:
        with EngineProcess(engine, *PRUNE, "--prune-interval", "1s") as running:
            running.wait_for_line("a second job is named build")
            time.sleep(GRACE)
    else:
        engine.reconcile(*PRUNE, ends=2)
    (now,) = objects.pods()
    assert now["metadata"]["uid"] == pod["metadata"]["uid"]
    assert "deletionTimestamp" not in now["metadata"]
    assert now["status"]["phase"] == "Running"
    (attempt,) = engine.status()["build"]["attempts"]
    assert (attempt["uid"], attempt["outcome"]) == (pod["metadata"]["uid"], None)


@pytest.mark.parametrize("staying", [False, True])
def test_a_folder_that_becomes_a_link_loses_no_job_to_prune(
    engine: Engine, objects: Objects, *, staying: bool
) -> None:
    engine.spec("other", script="true")
    engine.spec("build", script="true", file="web/build.yaml")
    engine.reconcile("--source", "web", ends=0)
    moved = engine.folder.with_name("moved")
    (engine.folder / "web").rename(moved)
    (engine.folder / "web").symlink_to(moved)
    if staying:
        with EngineProcess(engine, *PRUNE, "--prune-interval", "1s") as running:
            running.wait_for_line("web: warning: this link to a folder is not followed")
            running.wait_for_line("1 job has no spec any more, but nothing is removed")
            time.sleep(GRACE)
    else:
        said = engine.reconcile(*PRUNE, ends=2)
        assert "--prune would remove the jobs behind a link that is not followed" in said.stderr
    assert sorted(engine.status()) == ["build", "other"]
    engine.reconcile(*PRUNE, str(engine.folder / "web"), ends=0)
    assert (sorted(engine.status()), len(objects.pods())) == (["build", "other"], 2)
    (engine.folder / "web").unlink()
    engine.reconcile(*PRUNE, ends=0)
    assert sorted(engine.status()) == ["other"]
