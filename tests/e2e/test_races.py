"""Somebody else writes between two of the engine's own requests."""

import pytest

from engine.sandbox import Conflict, Fault, Refuse, Run, Sandbox
from engine.sandbox.faults import Effect
from tests.support.engine import Engine, finish
from tests.support.objects import Objects

pytestmark = pytest.mark.only("sandbox")

KEEPS_REFUSING = "the server keeps refusing a write as a conflict: "
EXISTS = Refuse(409, "AlreadyExists", 'secrets "x" already exists')


def test_a_secret_that_another_engine_makes_at_the_same_time_is_looked_at_again(
    engine: Engine, sandbox: Sandbox
) -> None:
    """Two creates meet an object that is not there when it is asked for in between."""
    sandbox.faults.add(Fault(EXISTS, verb="create", resource="secrets", times=2))
    engine.spec("job", script="true", secrets={"A": {"value": "anything"}})
    run = engine.reconcile(ends=0)
    assert len(run.job("job")["attempts"]) == 1


@pytest.mark.parametrize(
    ("verb", "resource", "effect", "words"),
    [
        ("create", "configmaps", Conflict(), KEEPS_REFUSING),
        ("create", "pods", EXISTS, KEEPS_REFUSING),
        ("update", "configmaps", Conflict(), KEEPS_REFUSING),
        ("patch", "pods", Conflict(), KEEPS_REFUSING),
        ("delete", "pods", Conflict(), KEEPS_REFUSING),
        ("[!glw]*", "*", Conflict(), "Operation cannot be fulfilled on pods"),
    ],
)
def test_a_server_that_answers_every_write_with_a_conflict_is_asked_again_with_a_back_off(
    engine: Engine, sandbox: Sandbox, verb: str, resource: str, effect: Effect, words: str
) -> None:
    sandbox.images.missing("down.example/tool:1")
    sandbox.faults.add(Fault(effect, verb, resource, times=None))
    engine.spec("job", image="down.example/tool:1", pullPolicy=["Always"])
    run = engine.reconcile("--timeout", "5s")
    assert "1 job is not over" in run.stderr
    assert words in run.stderr
    assert "defect" not in run.stderr
    assert "another engine" not in run.stderr
    assert len([entry for entry in sandbox.requests.writes if entry.code == 409]) < 60


def test_an_end_that_a_person_wrote_down_first_is_no_other_engines(
    engine: Engine, objects: Objects, sandbox: Sandbox
) -> None:
    sandbox.node.will(Run(duration=300), pod="job-*")
    engine.spec("job", script="sleep 300")
    running = engine.start()
    objects.wait_until_running("job")
    engine.run("cancel", "job", "-n", engine.namespace, "--reason", "wrong branch", ends=0)
    run = finish(running, ends=1)
    assert "another engine" not in run.stderr
    assert "wrong branch" in run.stderr
