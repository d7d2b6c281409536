"""What no command may do otherwise than the others: a new one is held to it by its name alone."""

import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import click
import pytest

from engine.cli.main import COMMANDS, load_command
from engine.sandbox import Sandbox
from tests.support.forked import ForkedProcess
from tests.unit.builders import document, write
from tests.unit.cli.conftest import Engine
from tests.unit.cli.test_commands import kubeconfig

NEVER_ASKED = {"sandbox", "demo"}
"""They serve a cluster of their own, and go on for as long as they like."""
ARGUMENTS: dict[str, tuple[str, ...]] = {
    "reconcile": ("--once", "specs"),
    "validate": ("specs",),
    "render": ("specs",),
    "diff": ("specs", "-o", "json"),
    "prune": ("-o", "json"),
    "cancel": ("done",),
    "rerun": ("done",),
    "complete": ("done", "-f", "specs", "--reason", "it ran elsewhere"),
    "adopt": ("specs", "--source", "web"),
    "migrate": ("specs", "--to", "files"),
    "describe": ("done",),
    "logs": ("done",),
    "status": (),
    "doctor": (),
    "convert": (str(Path(__file__).parent / "convert/job.yaml"),),
    "init": ("another",),
    "explain": ("spec",),
    "sandbox": (),
    "demo": (),
    "schema": (),
    "completion": ("bash",),
    "version": (),
}
"""What each command can be run with, where the job `done` has run."""
WRITES_FILES = {"--junit", "--write-kubeconfig", "--logs-dir"}
SWITCHES = {
    "ENGINE_ALL": (("cancel",), "no job is named"),
    "ENGINE_FAILED": (("rerun",), "no job is named"),
    "ENGINE_ALLOW_EMPTY": (("validate", "empty"), "no job specs found"),
    "ENGINE_ONCE": (("reconcile", "-", "--kubeconfig", "missing"), "- is read once"),
    "ENGINE_SANDBOX": (("reconcile", "--once", "specs", "--kubeconfig", "missing"), "missing"),
}
"""A command that the variable alone would change, and its error without it."""
READS_WHAT_THEY_WRITE = {("logs", "--logs-dir")}


def parameters(command: str) -> list[click.Parameter]:
    return load_command(command).params


def flags(command: str) -> list[click.Option]:
    return [one for one in parameters(command) if isinstance(one, click.Option)]


def asks_a_cluster(command: str) -> bool:
    return any("--kubeconfig" in flag.opts for flag in flags(command))


ASKING = [command for command in COMMANDS if asks_a_cluster(command)]


@pytest.fixture
def cluster_file(tmp_path: Path) -> Iterator[Path]:
    """The kubeconfig of a cluster in which the job `done` is over, as far as its record says."""
    write(tmp_path, "specs/done.yaml", document("done", script=None, command=["true"]))
    with Sandbox() as sandbox:
        yield sandbox.write_kubeconfig(tmp_path / "kubeconfig")


def test_every_command_is_held_to_what_follows() -> None:
    assert set(ARGUMENTS) == set(COMMANDS)


# Variables


@pytest.mark.parametrize("command", COMMANDS)
def test_flags_with_a_value_have_a_variable_but_those_that_write_files_and_switches_have_none(
    command: str,
) -> None:
    for flag in flags(command):
        name = next(word for word in flag.opts if word.startswith("--"))
        writes = name in WRITES_FILES and (command, name) not in READS_WHAT_THEY_WRITE
        variable = "ENGINE_" + name.lstrip("-").replace("-", "_").upper()
        assert flag.envvar == (None if writes or flag.is_flag else variable), name


@pytest.mark.parametrize("variable", sorted(SWITCHES))
def test_no_variable_selects_jobs_destroys_them_or_runs_them_on_a_simulated_cluster(
    engine: Engine, tmp_path: Path, variable: str
) -> None:
    write(tmp_path, "specs/done.yaml", document("done", script=None, command=["true"]))
    (tmp_path / "empty").mkdir()
    command, error = SWITCHES[variable]
    found = engine(*command, env={variable: "1"})
    assert (found.code in (2, 6), found.stdout) == (True, "")
    assert error in found.stderr


def test_a_variable_means_the_same_to_every_command() -> None:
    shapes: dict[str, dict[object, str]] = {}
    for command in COMMANDS:
        for flag in flags(command):
            if flag.envvar is not None:
                shapes.setdefault(str(flag.envvar), {}).setdefault(shape(flag), command)
    assert {name: found for name, found in shapes.items() if len(found) > 1} == {}


def shape(flag: click.Option) -> object:
    kind = flag.type
    if isinstance(kind, click.Choice):
        return "one of a list that is the command's own"
    if flag.envvar == "ENGINE_NAMESPACE":
        return "one, or several where there may be several"
    limits = vars(kind) if not isinstance(kind, click.Path) else {}
    return type(kind), str(sorted(limits.items())), flag.multiple, flag.is_flag, flag.count


def test_several_namespaces_are_an_error_where_one_is_meant(engine: Engine) -> None:
    said = engine("logs", "a", env={"ENGINE_NAMESPACE": "a b"})
    assert said.code == 2
    assert "'a b' can't be a namespace" in said.stderr


@pytest.mark.parametrize(
    "command", [one for one in COMMANDS if any("--namespace" in flag.opts for flag in flags(one))]
)
@pytest.mark.parametrize("name", ["Bad_Name", "-a", "a" * 64])
def test_what_cant_be_a_namespace_is_an_error_to_every_command(
    engine: Engine, command: str, name: str
) -> None:
    said = engine(command, f"--namespace={name}", *ARGUMENTS[command])
    assert said.code == 2
    assert f"'{name}' can't be a namespace" in said.stderr


# Usage


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("mistake", [("--nope",), ("a", "b", "c", "--nope=1")])
def test_a_flag_that_isnt_there_is_one_line(
    engine: Engine, command: str, mistake: tuple[str, ...]
) -> None:
    said = engine(command, *mistake)
    option = mistake[-1].partition("=")[0]
    assert (said.code, said.stdout) == (2, "")
    (line,) = said.lines
    told, hint = line.removesuffix(")").split(" (")
    assert told == f"error: no such option '{option}'"
    assert hint == f"engine {command} --help" or hint.startswith("did you mean --")


def needs_arguments(command: str) -> bool:
    return any(one.required for one in parameters(command)) or "specs" in ARGUMENTS[command]


def takes_any_number(command: str) -> bool:
    return any(one.nargs < 0 for one in parameters(command)) and not needs_arguments(command)


@pytest.mark.parametrize("command", [c for c in COMMANDS if not takes_any_number(c)])
def test_what_is_missing_is_one_line(engine: Engine, command: str) -> None:
    """Of commands that need nothing, what is too much; some take any number of names."""
    said = engine(command, *([] if needs_arguments(command) else ["one", "two", "three"]))
    assert (said.code, said.stdout) == (2, "")
    (line,) = said.lines
    assert re.fullmatch(r"error: [a-z].*[^.] \(engine .*--help\)", line)


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("recncile", "reconcile"),
        ("stauts", "status"),
        ("log", "logs"),
        ("run", "reconcile"),
        ("apply", "reconcile"),
        ("get", "status"),
        ("lint", "validate"),
    ],
)
def test_an_unknown_command_is_answered_with_what_was_meant(
    engine: Engine, word: str, meant: str
) -> None:
    said = engine(word, "x", "--y")
    assert (said.code, said.stdout) == (2, "")
    assert said.stderr.startswith(f"error: no such command '{word}' (did you mean {meant}")
    assert len(said.lines) == 1


def test_a_command_that_nothing_is_like_is_answered_with_the_help(engine: Engine) -> None:
    said = engine("xyzzy")
    assert said.stderr == "error: no such command 'xyzzy' (engine --help)\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_help_may_stand_before_a_command(engine: Engine, command: str) -> None:
    assert engine("help", command).stdout == engine(command, "--help").stdout


def test_help_alone_is_that_of_all(engine: Engine) -> None:
    assert engine("help").stdout == engine("--help").stdout
    assert engine("help", "recncile").stderr.startswith("error: no such command 'recncile'")


# Kubeconfig


@pytest.mark.parametrize("command", ASKING)
def test_a_kubeconfig_that_isnt_there_is_named(
    tmp_path: Path, engine: Engine, command: str
) -> None:
    write(tmp_path, "specs/done.yaml", document("done"))
    said = engine(command, *ARGUMENTS[command], "--kubeconfig", "/nope")
    assert said.code == (2 if command == "diff" else 6)
    assert "/nope: no usable kubeconfig: no such file" in said.stdout + said.stderr


@pytest.mark.parametrize("command", ASKING)
def test_a_context_that_isnt_there_is_told_with_those_that_are(
    engine: Engine, command: str, cluster_file: Path
) -> None:
    arguments = ("--kubeconfig", cluster_file, "--context", "nope")
    said = engine(command, *ARGUMENTS[command], *arguments)
    assert said.code == (2 if command == "diff" else 6)
    told = said.stdout + said.stderr
    assert f'{cluster_file}: there is no context "nope" (it has: ' in told


# Output


@pytest.fixture
def ready(engine: Engine, cluster_file: Path) -> Path:
    """The kubeconfig, once `done` has been recorded as done."""
    arguments = ("done", "-f", "specs", "--reason", "for a test", "--kubeconfig", cluster_file)
    assert engine("complete", *arguments).code == 0
    return cluster_file


PRINTING = [c for c in COMMANDS if c not in {*NEVER_ASKED, "logs"}]
"""`logs` has nothing to print of a job without a pod: tests/e2e/test_logs.py."""


def run_with_stdout(
    command: str, cluster_file: Path, descriptor: int, monkeypatch: pytest.MonkeyPatch
) -> int:
    """The exit code of a command that writes to `descriptor`, which is closed afterwards."""
    from engine.cli.main import main  # noqa: PLC0415 - the function, not the module

    where = ["--kubeconfig", str(cluster_file)] if command in ASKING else []
    monkeypatch.setattr(sys, "argv", ["engine", command, *ARGUMENTS[command], *where])
    with os.fdopen(descriptor, "w") as out, monkeypatch.context() as patched:
        patched.setattr(sys, "stdout", out)
        with pytest.raises(SystemExit) as end:
            main()
    return int(end.value.code or 0)


@pytest.mark.parametrize("command", PRINTING)
def test_nobody_is_told_of_a_reader_that_has_gone(
    command: str, ready: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    capsys.readouterr()
    assert run_with_stdout(command, ready, writer, monkeypatch) == 0
    assert not re.search("error|Traceback|Broken", capsys.readouterr().err)


@pytest.mark.parametrize("command", PRINTING)
def test_an_output_that_is_full_is_told_as_what_it_is(
    command: str, ready: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    capsys.readouterr()
    assert run_with_stdout(command, ready, full, monkeypatch) == 74
    lines = [line for line in capsys.readouterr().err.splitlines() if "error" in line]
    assert lines == ["error: the output can't be written: No space left on device"]


# Interrupts


@pytest.mark.parametrize("command", COMMANDS)
def test_an_interrupt_is_130_and_one_line(
    engine: Engine, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = load_command(command)

    def interrupt(**_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(found, "callback", interrupt)
    said = engine(command, *ARGUMENTS[command])
    assert (said.code, said.stdout, said.stderr) == (130, "", "interrupted\n")


def test_ctrl_c_ends_whoever_waits_for_a_server(tmp_path: Path) -> None:
    """All commands that ask one, side by side; each as soon as it has said for whom it waits."""
    write(tmp_path, "specs/done.yaml", document("done"))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        server = f"http://127.0.0.1:{silent.getsockname()[1]}"
        config = kubeconfig(tmp_path, server)
        with ThreadPoolExecutor(len(ASKING)) as pool:
            ends = [*pool.map(lambda command: interrupted(command, tmp_path, config), ASKING)]
    waits = f"waiting for {server}: no answer for 2s"
    for command, (code, lines) in zip(ASKING, ends, strict=True):
        assert (code, lines[:-1]) == (130, [waits]), (command, lines)
        assert lines[-1].startswith("interrupted"), (command, lines)


def interrupted(command: str, folder: Path, config: Path) -> tuple[int, list[str]]:
    """How it ends, and what it says, if Ctrl-C is pressed after its first line."""
    process = ForkedProcess(
        [command, *ARGUMENTS[command], "--kubeconfig", str(config)],
        os.environ,
        cwd=folder,
        stdout=subprocess.DEVNULL,
    )
    guard = threading.Timer(120, process.kill)
    guard.start()
    assert process.stderr is not None
    with process.stderr as errors:
        first = errors.readline()
        process.send_signal(signal.SIGINT)
        lines = [first.rstrip("\n"), *errors.read().splitlines()]
    code = process.wait()
    guard.cancel()
    return code, lines
