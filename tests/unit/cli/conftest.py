"""The command line as a user meets it: exit code, stdout, stderr."""

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from engine.cli.main import main
from tests.support.engine import CommandResult
from tests.support.forked import ForkedProcess

Engine = Callable[..., CommandResult]


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No settings of the machine's own, and the specs' folder as the working directory."""
    for name in [*os.environ]:
        if name.startswith(("ENGINE_", "KUBE", "GITHUB_", "GITLAB_", "CI_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def engine(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Engine:
    """Run a command in this process; whatever it does, there is no traceback."""

    def run(*arguments: str | Path, env: Mapping[str, str] | None = None) -> CommandResult:
        for name, value in (env or {}).items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(sys, "argv", ["engine", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main()
        told = capsys.readouterr()
        assert "Traceback" not in told.out + told.err
        assert "error: internal error" not in told.err
        return CommandResult(int(end.value.code or 0), told.out, told.err)

    return run


@pytest.fixture
def process() -> Engine:
    """Run a command in a process of its own, for what imports the cluster's client."""

    def run(*arguments: str | Path, env: Mapping[str, str] | None = None) -> CommandResult:
        process = ForkedProcess([*map(str, arguments)], {**os.environ, **(env or {})})
        try:
            stdout, stderr = process.communicate(60)
        finally:
            process.kill()
        assert "Traceback" not in stdout + stderr
        assert "internal error" not in stderr
        return CommandResult(process.wait(), stdout, stderr)

    return run
