"""A server that is older than the oldest supported one is refused before anything else."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.sandbox import Sandbox
from tests.support.clusters import NAMESPACE, engine_on
from tests.support.engine import Engine
from tests.support.engine_process import EngineProcess

pytestmark = pytest.mark.only("sandbox")

TOO_OLD = (
    "the server is Kubernetes 1.29, older than 1.30, the oldest supported version "
    "(upgrade the cluster, or use another context)"
)


@pytest.fixture
def old() -> Iterator[Sandbox]:
    with Sandbox(version="1.29") as running:
        running.namespace(NAMESPACE)
        yield running


@pytest.fixture
def engine(old: Sandbox, tmp_path: Path) -> Engine:
    return engine_on(old, tmp_path)


def asked(sandbox: Sandbox) -> list[tuple[str, str]]:
    return [(entry.verb, entry.path) for entry in sandbox.requests]


def test_a_reconcile_is_refused_before_it_writes(engine: Engine, old: Sandbox) -> None:
    engine.spec("job", script="true")
    run = engine.reconcile(ends=6)
    assert run.stderr == f"error: {old.url}: {TOO_OLD}\n"
    assert ("get", "/version") in asked(old)
    assert {verb for verb, _ in asked(old)} <= {"get", "list"}


def test_an_engine_that_stays_ends_at_its_start(engine: Engine, old: Sandbox) -> None:
    engine.spec("job", script="true")
    with EngineProcess(engine, ready=False) as staying:
        ended = staying.wait(90)
    assert ended.code == 6
    assert ended.stderr.count(TOO_OLD) == 1
    assert asked(old) == [("get", "/version")]


@pytest.mark.parametrize(
    "command",
    [
        ("reconcile", "--once", "--prune", "--allow-empty", "--source", "mine", "."),
        ("prune", "-A"),
        ("prune", "--dry-run", "client"),
        ("cancel", "job", "-n", NAMESPACE),
        ("rerun", "job", "-n", NAMESPACE),
    ],
    ids=lambda command: " ".join(command[:3]),
)
def test_whatever_might_write_is_refused_as_well(
    engine: Engine, old: Sandbox, command: tuple[str, ...]
) -> None:
    where = [str(engine.folder) if word == "." else word for word in command]
    run = engine.run(*where, ends=6)
    assert TOO_OLD in run.stderr
    assert asked(old) == [("get", "/version")]


def test_what_the_records_say_can_be_read_on_any_server(engine: Engine, old: Sandbox) -> None:
    assert engine.status() == {}
    assert not old.requests.writes


def test_the_oldest_supported_server_is_welcome(tmp_path: Path) -> None:
    with Sandbox(version="1.30") as oldest:
        oldest.namespace(NAMESPACE)
        engine = engine_on(oldest, tmp_path)
        engine.spec("job", script="true", services=[{"name": "redis", "image": "redis:7"}])
        engine.reconcile(ends=0)
