"""How an engine that stays begins and ends where the cluster or the input doesn't let it work."""

import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from engine.sandbox import Sandbox
from tests.support.engine import Engine, finish
from tests.support.engine_process import EngineProcess, wait_for_state

pytestmark = pytest.mark.only("sandbox")


@pytest.fixture
def unreachable(engine: Engine) -> Iterator[Engine]:
    """The engine with a kubeconfig whose server takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        text = engine.kubeconfig.read_text()
        server = next(word for word in text.replace('"', " ").split() if word.startswith("http"))
        path = engine.kubeconfig.with_name("silent")
        path.write_text(text.replace(server, f"http://127.0.0.1:{port}"))
        yield Engine(path, engine.namespace, engine.folder, engine.image)


def test_a_cluster_that_cannot_be_reached_at_the_start_ends_it_with_6(
    engine: Engine, sandbox: Sandbox
) -> None:
    sandbox.stop()
    with EngineProcess(engine, ready=False) as staying:
        ended = staying.wait(90)
    assert ended.code == 6
    assert "no answer from the API server" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_sigterm_ends_it_also_while_it_waits_for_a_silent_cluster(unreachable: Engine) -> None:
    with EngineProcess(unreachable, ready=False) as staying:
        staying.wait_for_line("served at")
        assert staying.probe("/readyz")[0] == 503
        time.sleep(1)
        assert staying.stop(signal.SIGTERM).code == 0
    assert "Traceback" not in staying.text


@pytest.mark.parametrize(("way", "code"), [(("--once",), 143), ((), 0)], ids=["once", "stays"])
def test_a_signal_that_another_thread_takes_ends_it_as_well(
    engine: Engine, way: tuple[str, ...], code: int
) -> None:
    """The kernel chooses the thread; Python acts on the signal when the main one wakes up."""
    engine.spec("long", nodeSelector={"no": "such-node"}, script="true")
    place = (str(engine.folder), "-n", engine.namespace)
    process = engine.begin("reconcile", *place, *way)
    wait_for_state(engine, "long", "Starting")
    threads = sorted(int(task.name) for task in Path(f"/proc/{process.pid}/task").iterdir())
    os.kill(threads[1], signal.SIGTERM)
    assert finish(process, 60).code == code


def test_sigterm_ends_it_in_time_while_every_request_hangs(
    engine: Engine, sandbox: Sandbox, unreachable: Engine
) -> None:
    with EngineProcess(engine) as staying:
        sandbox.stop()
        for number in range(20):
            engine.spec(f"job-{number}", script="true")
        time.sleep(1)
        assert staying.stop(signal.SIGTERM).code == 0


@pytest.mark.parametrize(
    ("write", "words"),
    [
        ("", "no such file or folder"),
        ("kind: [", "engine.yaml:"),
    ],
)
def test_what_cannot_be_is_told_before_anything_begins(
    engine: Engine, write: str, words: str, tmp_path: Path
) -> None:
    config = tmp_path / "engine.yaml"
    if write:
        config.write_text(write)
        run = engine.run("reconcile", str(engine.folder), "--config", str(config))
    else:
        run = engine.run("reconcile", str(tmp_path / "nowhere"), ends=2)
    assert words in run.stderr


def test_a_port_that_is_taken_is_told_with_a_hint(engine: Engine) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        run = engine.run("reconcile", str(engine.folder), "--metrics-address", address, ends=2)
    assert "--metrics-address" in run.stderr


@pytest.mark.parametrize(("way", "number"), [(("--once",), signal.SIGINT), ((), signal.SIGTERM)])
def test_a_signal_ends_it_although_nobody_reads_its_full_output(
    engine: Engine, sandbox: Sandbox, way: tuple[str, ...], number: int
) -> None:
    engine.spec("job", script="true")
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with suppress(BlockingIOError):
        while True:
            os.write(writer, b"x" * 4096)
    os.set_blocking(writer, True)
    process = engine.begin(
        "reconcile", str(engine.folder), "-n", engine.namespace, *way, stdout=writer, stderr=writer
    )
    while not sandbox.requests.writes:
        time.sleep(0.05)
    time.sleep(1)
    process.send_signal(number)
    assert process.wait(60) == 128 + number
    os.close(reader)
    os.close(writer)
