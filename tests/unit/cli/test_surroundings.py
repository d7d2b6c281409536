"""What a process finds around it: signals while it starts and ends, streams that are closed, a
working directory that is gone. Each command is a process of its own, as a shell starts it.
"""

import os
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPConnection
from pathlib import Path

import pytest

from tests.support.engine import CommandResult
from tests.unit.builders import document, write

ROOT = Path(__file__).parents[3]
_MODULE, _, _FUNCTION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"][
    "engine"
].partition(":")
ENTRIES = {
    "-m engine": [sys.executable, "-m", "engine"],
    "the script": [sys.executable, "-c", f"from {_MODULE} import {_FUNCTION}; {_FUNCTION}()"],
}
ENGINE = ENTRIES["-m engine"]
_STOPS = """
import atexit, os, sys

def stop():
    os.write(int(os.environ["STOPPED"]), b"!")
    os.read(int(os.environ["GO_ON"]), 1)

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ["STOP_AT"]:
            stop()

sys.meta_path.insert(0, Finder())
if os.environ["STOP_AT"] == "exit":
    atexit.register(stop)
"""
"""Run by Python before the engine: it stops where that module is imported, or at the very end."""


def environment(**more: str) -> Mapping[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), **more}


@dataclass(frozen=True)
class StoppedProcess:
    """One that has stopped where it was told to."""

    process: subprocess.Popen[str]
    go_on: int

    def signalled(self, number: int) -> CommandResult:
        """How it ends with this signal, and let go after it."""
        self.process.send_signal(number)
        os.close(self.go_on)
        stdout, stderr = self.process.communicate(timeout=60)
        return CommandResult(self.process.returncode, stdout, stderr)


@dataclass
class Starter:
    """Starts processes, and leaves none behind."""

    folder: Path
    started: list[subprocess.Popen[str]]

    def stopped_at(
        self,
        where: str,
        *arguments: str,
        entry: Sequence[str] = ENGINE,
        sigint: str = "default",
    ) -> StoppedProcess:
        """Started with SIGINT as `default` or `ignore` has it, and stopped at `where`."""
        write(self.folder, "site/sitecustomize.py", _STOPS)
        said, says = os.pipe()
        waits, go_on = os.pipe()
        variables = environment(
            PYTHONPATH=f"{self.folder / 'site'}:{ROOT}",
            STOP_AT=where,
            STOPPED=str(says),
            GO_ON=str(waits),
        )
        process = subprocess.Popen(
            ["env", f"--{sigint}-signal=INT", *entry, *arguments],
            env=variables,
            pass_fds=(says, waits),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.started.append(process)
        os.close(says)
        os.close(waits)
        assert os.read(said, 1) == b"!", process.communicate()
        os.close(said)
        return StoppedProcess(process, go_on)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Starter]:
    write(tmp_path, "specs/a.yaml", document())
    starter = Starter(tmp_path, [])
    yield starter
    for process in starter.started:
        if process.returncode is None:
            process.kill()
            process.communicate()


def run(line: str, *arguments: str | Path) -> CommandResult:
    """`line` is of a shell, in which "$@" is the engine with its arguments."""
    done = subprocess.run(
        ["sh", "-c", line, "sh", *ENGINE, *arguments],
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "Traceback" not in done.stdout + done.stderr
    assert "internal error" not in done.stderr
    return CommandResult(done.returncode, done.stdout, done.stderr)


# Signals


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("module", ["click", "engine.cli.validate", "engine.specdir.load"])
def test_ctrl_c_while_the_engine_is_imported_ends_it_as_any_program(
    start: Starter, module: str, entry: str
) -> None:
    stopped = start.stopped_at(module, "validate", "specs", entry=ENTRIES[entry])
    assert stopped.signalled(signal.SIGINT) == CommandResult(-signal.SIGINT, "", "")


def test_ctrl_c_in_a_command_is_for_the_command_to_act_on(start: Starter) -> None:
    stopped = start.stopped_at("engine.cluster.connect", "status")
    assert stopped.signalled(signal.SIGINT) == CommandResult(130, "", "interrupted\n")


@pytest.mark.parametrize("where", ["click", "engine.api.parse", "exit"])
def test_a_ctrl_c_that_the_parent_ignores_stays_ignored(start: Starter, where: str) -> None:
    said = start.stopped_at(where, "init", sigint="ignore").signalled(signal.SIGINT)
    assert (said.code, said.stdout) == (0, "jobs/hello.yaml\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(
    "command", [("validate", "specs"), ("reconcile", "--once", "specs", "--sandbox")]
)
def test_a_signal_after_the_work_ends_what_is_left_of_the_process(
    start: Starter, command: tuple[str, ...], number: signal.Signals
) -> None:
    said = start.stopped_at("exit", *command).signalled(number)
    assert said.code == -number
    assert "Traceback" not in said.stderr


def test_one_that_the_parent_ignores_does_not_end_an_engine_that_stays(start: Starter) -> None:
    command = ("reconcile", "specs", "--sandbox")
    staying = start.stopped_at("engine.api.parse", *command, sigint="ignore")
    os.close(staying.go_on)
    errors = staying.process.stderr
    assert errors is not None
    assert any(line.endswith(" ready\n") for line in errors)
    staying.process.send_signal(signal.SIGINT)
    staying.process.send_signal(signal.SIGTERM)
    said = staying.process.communicate(timeout=60)[1]
    assert (staying.process.returncode, "stopping: SIGTERM\n" in said) == (0, True)


def test_one_that_the_parent_ignores_does_not_end_a_sandbox(start: Starter) -> None:
    serving = start.stopped_at("engine.sandbox", "sandbox", sigint="ignore")
    os.close(serving.go_on)
    errors = serving.process.stderr
    assert errors is not None
    host = errors.readline().removeprefix("sandbox at http://").partition(": a simulated")[0]
    for _ in range(100):
        serving.process.send_signal(signal.SIGINT)
        connection = HTTPConnection(host, timeout=60)
        connection.request("GET", "/version")
        assert connection.getresponse().status == HTTPStatus.OK
        connection.close()


# Streams


@pytest.mark.parametrize(
    "command",
    [
        ("validate", "-"),
        ("render", "-f", "-"),
        ("diff", "-"),
        ("reconcile", "--once", "-", "--sandbox"),
    ],
)
def test_a_closed_standard_input_is_an_empty_one(command: tuple[str, ...]) -> None:
    closed, empty = run('exec "$@" <&-', *command), run('exec "$@" </dev/null', *command)
    assert closed == empty
    assert closed.stderr == "error: no job specs found (--allow-empty, if that is meant)\n"
    assert closed.code == 2


def test_a_standard_input_that_cannot_be_read_is_told_as_what_it_is() -> None:
    said = run('exec "$@" 0>written', "validate", "-")
    assert (said.code, said.stderr) == (2, "error: <stdin>: can't be read: Bad file descriptor\n")


@pytest.mark.parametrize("command", [("--help",), ("--version",), ("validate", "--help")])
def test_a_reader_that_has_gone_is_no_failure_of_help(command: tuple[str, ...]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [*ENGINE, *command], env=environment(), stdout=writer, stderr=subprocess.PIPE, check=False
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize(
    ("code", "command"),
    [
        (0, ("--version",)),
        (0, ("validate", "specs")),
        (0, ("render", "specs")),
        (0, ("init",)),
        (2, ("validate", "nothing")),
        (2, ("nonsense",)),
        (6, ("status", "--kubeconfig", "nothing")),
    ],
)
def test_a_closed_output_leaves_the_exit_code(
    tmp_path: Path, code: int, command: tuple[str, ...], closed: str
) -> None:
    write(tmp_path, "specs/a.yaml", document())
    assert run(f'exec "$@" {closed}', *command).code == code


@pytest.fixture(params=["no reader", "full"])
def lost(request: pytest.FixtureRequest) -> Iterator[int]:
    """What can't be written to."""
    if request.param == "full":
        writer = os.open("/dev/full", os.O_WRONLY)
    else:
        reader, writer = os.pipe()
        os.close(reader)
    yield writer
    os.close(writer)


@pytest.mark.parametrize(
    ("code", "command"),
    [
        (0, ("init",)),
        (0, ("reconcile", "--once", "specs/good.yaml", "--sandbox")),
        (4, ("reconcile", "--once", "specs/bad.yaml", "--sandbox")),
        (2, ("validate", "nothing")),
        (2, ("nonsense",)),
        (6, ("status", "--kubeconfig", "nothing")),
    ],
)
def test_a_stderr_that_cannot_be_written_to_changes_no_outcome(
    tmp_path: Path, lost: int, code: int, command: tuple[str, ...]
) -> None:
    write(tmp_path, "specs/good.yaml", document("good"))
    bad = document("bad", image="nowhere.invalid/x:1", pullPolicy="Never")
    write(tmp_path, "specs/bad.yaml", bad)
    done = subprocess.run(
        [*ENGINE, *command],
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=lost,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == code
    if "--once" in command:
        assert f"default/{Path(command[2]).stem}" in done.stdout


# The working directory


_DELETED = 'mkdir gone && cd gone && rmdir ../gone && exec "$@"'


@pytest.mark.parametrize(
    "command",
    [
        ("validate", "specs/"),
        ("validate", "."),
        ("validate", "-"),
        ("render", "specs"),
        ("diff", "."),
        ("reconcile", "--once", "specs", "--sandbox"),
        ("reconcile", ".", "--sandbox"),
        ("init",),
    ],
)
def test_a_working_directory_that_was_deleted_is_told_where_it_is_needed(
    command: tuple[str, ...],
) -> None:
    said = run(_DELETED, *command)
    told = "error: the working directory was deleted (cd into one that exists)\n"
    assert said == CommandResult(2, "", told)


def test_nothing_is_missed_of_a_deleted_one_where_all_paths_are_whole(tmp_path: Path) -> None:
    write(tmp_path, "specs/a.yaml", document())
    specs = tmp_path / "specs"
    assert run(_DELETED, "validate", specs).stdout == "1 job, all valid\n"
    assert run(_DELETED, "reconcile", "--once", specs, "--sandbox").code == 0


@pytest.mark.parametrize(
    "command",
    [("--help",), ("--version",), ("validate", "--help"), ("explain", "spec"), ("schema",)],
)
def test_help_needs_no_working_directory(command: tuple[str, ...]) -> None:
    assert run(_DELETED, *command) == run('exec "$@"', *command)


def test_the_demo_needs_no_working_directory() -> None:
    assert "Everything happened as described" in run(_DELETED, "demo").stdout
