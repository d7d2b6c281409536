"""Completion as somebody who presses Tab sees it, in the shells that this machine has."""

import os
import pty
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cluster.fixtures import do_without
from tests.unit.builders import document, write
from tests.unit.cli.conftest import Engine

SHELLS = {
    "bash": (["--norc", "--noprofile", "-i"], "source <(engine completion bash)"),
    "zsh": (["-f", "-i"], "autoload -U compinit; compinit -D; source <(engine completion zsh)"),
    "fish": (["--no-config", "-i"], "engine completion fish | source"),
}
_READY = "is-ready"


@pytest.fixture
def command(tmp_path: Path) -> Path:
    """A folder with a command `engine` that is this very code."""
    script = f"#!{sys.executable}\nfrom engine.__main__ import main\nmain()\n"
    path = write(tmp_path, "bin/engine", script)
    path.chmod(0o755)
    return path.parent


def press_tab(shell: str, line: str, completed: str, command: Path) -> str:
    """What the shell shows of `line` after Tab, up to what it should have `completed`."""
    arguments, load = SHELLS[shell]
    program = shutil.which(shell)
    if program is None:
        do_without(f"there is no {shell} on this machine")
    master, slave = pty.openpty()
    process = subprocess.Popen(
        ["setsid", "--ctty", program, *arguments],  # fish wants a terminal of its own
        stdin=slave, stdout=slave, stderr=slave,
        env={
            "PATH": f"{command}:{os.environ['PATH']}",
            "PYTHONPATH": str(Path(__file__).parents[3]),
            "HOME": str(command.parent),
            "TERM": "dumb",
        },
    )  # fmt: skip
    os.close(slave)
    try:
        os.write(master, f"{load}; echo is''-ready\n".encode())
        read_until(master, _READY)
        os.write(master, f"{line}\t".encode())
        return read_until(master, completed)
    finally:
        process.kill()
        process.wait()
        os.close(master)


def read_until(master: int, words: str, within: float = 60.0) -> str:
    """What is shown, up to `words`, or for so many seconds."""
    deadline = time.monotonic() + within
    shown = ""
    while words not in shown and (left := deadline - time.monotonic()) > 0:
        if select.select([master], [], [], left)[0]:
            shown += os.read(master, 4096).decode(errors="replace")
    return shown


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("line", "completed"),
    [
        ("engine valid", "engine validate "),
        ("engine validate jo", "jobs/"),
        ("engine validate -f jo", "jobs/"),
    ],
)
def test_tab_completes(
    shell: str, line: str, completed: str, tmp_path: Path, command: Path
) -> None:
    write(tmp_path, "jobs/a.yaml", document())
    shown = press_tab(shell, line, completed, command)
    assert completed in shown


def test_commands_are_completed_without_importing_them(process: Engine) -> None:
    variables = {
        "_ENGINE_COMPLETE": "bash_complete", "COMP_WORDS": "engine r", "COMP_CWORD": "1",
    }  # fmt: skip
    found = process(env=variables).stdout.splitlines()
    assert found == ["plain,reconcile", "plain,render", "plain,rerun"]
