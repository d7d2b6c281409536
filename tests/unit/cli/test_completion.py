"""Completion as somebody who presses Tab sees it, in the shells that this machine has."""

import os
import pty
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.sandbox import Sandbox
from tests.cluster.fixtures import do_without
from tests.support.api import Api
from tests.unit.builders import document, write
from tests.unit.cli.conftest import Engine

SHELLS = {
    "bash": (["--norc", "--noprofile", "-i"], "source <(engine completion bash)"),
    "zsh": (["-f", "-i"], "autoload -U compinit; compinit -D; source <(engine completion zsh)"),
    "fish": (["--no-config", "-i"], "engine completion fish | source"),
}
_READY = "is-ready"


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Path]:
    """A kubeconfig of a cluster with the jobs `build` and `other`."""
    with Sandbox() as sandbox:
        sandbox.namespace("team-blue")
        path = sandbox.write_kubeconfig(tmp_path / "kubeconfig")
        api = Api.from_kubeconfig(path)
        for namespace in ("default", "team-blue"):
            for job in ("build", "other"):
                api.create("configmaps", record(namespace, job), namespace)
        yield path


def record(namespace: str, job: str) -> dict[str, object]:
    labels = {"app.kubernetes.io/managed-by": "engine", "jobs.engine/component": "record"}
    metadata = {"name": f"{job}.record", "namespace": namespace, "labels": labels}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {}}


@pytest.fixture
def command(tmp_path: Path) -> Path:
    """A folder with a command `engine` that is this very code."""
    script = f"#!{sys.executable}\nfrom engine.__main__ import main\nmain()\n"
    path = write(tmp_path, "bin/engine", script)
    path.chmod(0o755)
    return path.parent


def press_tab(shell: str, line: str, completed: str, command: Path, kubeconfig: Path) -> str:
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
            "KUBECONFIG": str(kubeconfig),
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
        ("engine cancel bu", "build "),
        ("engine logs team-blue/ot", "team-blue/other "),
    ],
)
def test_tab_completes(
    shell: str, line: str, completed: str, tmp_path: Path, command: Path, served: Path
) -> None:
    write(tmp_path, "jobs/a.yaml", document())
    shown = press_tab(shell, line, completed, command, served)
    assert completed in shown


@pytest.mark.parametrize("words", ["cancel b", "rerun x"])
def test_without_a_cluster_nothing_is_completed_and_nothing_is_told(
    process: Engine, words: str
) -> None:
    variables = {
        "_ENGINE_COMPLETE": "bash_complete",
        "COMP_WORDS": f"engine {words}",
        "COMP_CWORD": str(len(words.split())),
        "KUBECONFIG": "/nowhere",
    }
    said = process(env=variables)
    assert (said.code, said.stdout.strip(), said.stderr) == (0, "", "")


def test_jobs_that_are_named_already_are_not_offered_again(process: Engine, served: Path) -> None:
    variables = {
        "_ENGINE_COMPLETE": "bash_complete",
        "COMP_WORDS": "engine cancel -n team-blue build ",
        "COMP_CWORD": "5",
        "KUBECONFIG": str(served),
    }
    assert process(env=variables).stdout.splitlines() == ["plain,other"]


def test_commands_are_completed_without_importing_them(process: Engine) -> None:
    variables = {
        "_ENGINE_COMPLETE": "bash_complete", "COMP_WORDS": "engine r", "COMP_CWORD": "1",
    }  # fmt: skip
    found = process(env=variables).stdout.splitlines()
    assert found == ["plain,reconcile", "plain,render", "plain,rerun"]
