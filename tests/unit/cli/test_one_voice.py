"""Errors in one voice, and what happens where nobody reads the output any more."""

import ast
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.cli.main import COMMANDS, load_command
from tests.unit.builders import document, write
from tests.unit.cli.conftest import Engine
from tests.unit.cli.test_commands import kubeconfig

ROOT = Path(__file__).parents[3]


@pytest.fixture
def silent_server() -> Iterator[str]:
    """A server that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_takes_vv_for_which_an_internal_error_asks(command: str) -> None:
    params = load_command(command).params
    (verbose,) = [parameter for parameter in params if parameter.name == "verbose"]
    assert "-v" in verbose.opts


@pytest.mark.parametrize(
    ("more", "has_traceback"),
    [((), False), (("-v",), False), (("-vv",), True), (("-v", "--verbose"), True)],
)
def test_vv_brings_the_traceback_of_an_internal_error(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    more: tuple[str, ...],
    has_traceback: bool,
) -> None:
    from engine.cli import main  # noqa: PLC0415 - the module, not the function

    def fail(*_: object, **__: object) -> None:
        raise KeyError("defect")

    monkeypatch.setattr(main.cli, "invoke", fail)
    monkeypatch.setattr(sys, "argv", ["engine", "status", *more])
    with pytest.raises(SystemExit) as end:
        main.main()
    told = capsys.readouterr().err
    assert end.value.code == 70
    assert "error: internal error: KeyError: report it with -vv" in told
    assert ("Traceback" in told) == has_traceback


def test_the_command_alone_is_no_error_and_prints_the_help_as_it_is(engine: Engine) -> None:
    alone = engine()
    assert (alone.code, alone.stderr) == (0, "")
    assert alone.stdout == engine("--help").stdout
    assert "\nCommands:\n  reconcile " in alone.stdout


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        (("reconcile", "-once", "jobs"), "--once"),
        (("prune", "-all-namespaces"), "--all-namespaces"),
        (("reconcile", "--out", "json", "jobs"), "--output"),
        (("schema", "job"), "JobDefaults or JobSpec"),
        (("status", "-o", "js"), "json"),
    ],
)
def test_an_option_or_value_that_is_nearly_one_is_told_with_that_one_alone(
    engine: Engine, typed: tuple[str, ...], meant: str
) -> None:
    said = engine(*typed)
    assert said.code == 2
    assert said.stderr.endswith(f" (did you mean {meant}?)\n")


@pytest.mark.parametrize("given", [("--dry-run", "jobs"), ("jobs", "--dry-run")])
def test_a_dry_run_without_a_value_is_no_error_and_asks_no_server(
    tmp_path: Path, process: Engine, given: tuple[str, ...]
) -> None:
    write(tmp_path / "jobs", "a.yaml", document())
    said = process("reconcile", "--sandbox", *given)
    assert (said.code, said.stderr.splitlines()[-1]) == (
        0,
        "1 job: 1 start (dry run: nothing was written)",
    )
    assert process("reconcile", "--sandbox", "--dry-run", "none", "--once", "jobs").code == 0


def test_a_kubeconfig_that_isnt_there_is_named(process: Engine) -> None:
    said = process("status", env={"KUBECONFIG": "/nope:/nor-this"})
    assert said.code == 6
    assert said.stderr.startswith("error: /nope:/nor-this: no usable kubeconfig: no such file")
    assert "/.kube/config: no usable kubeconfig: no such file" in process("status").stderr


@pytest.mark.parametrize(
    ("context", "hint"), [("her", "it has: here, there"), ("production", "it has: here, there")]
)
def test_a_context_that_isnt_there_is_told_with_those_that_are(
    tmp_path: Path, process: Engine, context: str, hint: str
) -> None:
    path = kubeconfig(tmp_path, "http://127.0.0.1:1")
    text = path.read_text().replace(
        "contexts: [", "contexts: [{name: there, context: {cluster: here, user: me}}, "
    )
    path.write_text(text)
    said = process("status", "--kubeconfig", path, "--context", context)
    assert (said.code, said.stdout) == (6, "")
    assert said.stderr == f'error: {path}: there is no context "{context}" ({hint})\n'


def test_a_kubeconfig_without_a_current_context_says_which_there_are(
    tmp_path: Path, process: Engine
) -> None:
    path = kubeconfig(tmp_path, "http://127.0.0.1:1")
    path.write_text(path.read_text().replace("current-context: here\n", ""))
    said = process("status", "--kubeconfig", path)
    assert said.stderr == f"error: {path}: it has no current-context (it has: here)\n"


def test_a_context_can_be_chosen_where_none_is_current(tmp_path: Path, process: Engine) -> None:
    path = kubeconfig(tmp_path, "http://127.0.0.1:1")
    path.write_text(path.read_text().replace("current-context: here\n", ""))
    said = process("status", "--kubeconfig", path, "--context", "here")
    assert "no answer from the API server" in said.stderr


def test_a_server_that_says_nothing_is_told_of_while_one_waits(
    tmp_path: Path, silent_server: str
) -> None:
    path = kubeconfig(tmp_path, silent_server)
    waiting = subprocess.Popen(
        [sys.executable, "-m", "engine", "status", "--kubeconfig", path],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        text=True,
    )
    guard = threading.Timer(60, waiting.kill)
    guard.start()
    try:
        assert waiting.stderr is not None
        line = waiting.stderr.readline()
    finally:
        guard.cancel()
        waiting.kill()
        waiting.communicate()
    assert line == f"waiting for {silent_server}: no answer for 2s\n"


@pytest.mark.parametrize(
    "arguments", [("render", "specs"), ("validate", "specs"), ("schema",), ("demo",)]
)
def test_nobody_is_told_of_a_reader_that_has_gone(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    for number in range(40):
        write(tmp_path, f"specs/{number}.yaml", document(f"j{number}"))
    command = [sys.executable, "-m", "engine", *arguments]
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
    running = subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert running.stdout is not None
    running.stdout.close()
    _, told = running.communicate(timeout=120)
    assert (running.returncode, told) == (0, b"")


def test_a_reader_that_has_gone_changes_no_outcome_of_a_reconcile(tmp_path: Path) -> None:
    write(tmp_path, "specs/a.yaml", document("a", image="nowhere.invalid/x:1", pullPolicy="Never"))
    command = [sys.executable, "-m", "engine", "reconcile", "--once", "specs", "--sandbox"]
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
    running = subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert running.stdout is not None
    running.stdout.close()
    _, told = running.communicate(timeout=120)
    assert running.returncode == 4
    assert b"Traceback" not in told
    assert b"Broken" not in told


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_a_closed_output_changes_no_outcome(tmp_path: Path, closed: str) -> None:
    write(tmp_path, "specs/a.yaml", document("a", image="nowhere.invalid/x:1", pullPolicy="Never"))
    command = f"{sys.executable} -m engine reconcile --once specs --sandbox {closed}"
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 4, done.stderr


def test_an_output_that_is_full_is_told_as_what_it_is(tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "engine", "schema"],
            cwd=ROOT,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=60,
        )
    assert done.returncode == 74
    assert done.stderr == "error: the output can't be written: No space left on device\n"


@pytest.mark.parametrize("folder", ["engine", "schemas", "templates"])
def test_no_message_names_a_file_that_pip_does_not_install(folder: str) -> None:
    for file in sorted((ROOT / folder).glob("**/*.*")):
        if file.suffix not in (".py", ".json", ".j2") or "kubernetes" in file.parts:
            continue
        text = file.read_text(encoding="utf-8")
        texts = [text] if file.suffix != ".py" else [*_messages(ast.parse(text))]
        found = [one for one in texts if "docs/" in one or "deploy/" in one]
        assert not found, file


def _messages(tree: ast.Module) -> Iterator[str]:
    """All texts but docstrings."""
    nodes = [*ast.walk(tree)]
    docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if isinstance(node, ast.Constant) and id(node) not in docstrings:
            yield str(node.value)
