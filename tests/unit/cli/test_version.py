"""`engine version`: the engine's own always, the server's where one answers."""

import platform
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine import __version__
from engine.sandbox import Sandbox
from tests.unit.cli.conftest import Engine


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Path]:
    with Sandbox(version="1.31") as sandbox:
        yield sandbox.write_kubeconfig(tmp_path / "kubeconfig")


def test_the_versions_of_client_and_server_are_told(process: Engine, served: Path) -> None:
    said = process("version", "--kubeconfig", served)
    own, theirs = said.stdout.splitlines()
    assert (said.code, own) == (0, f"engine {__version__} (Python {platform.python_version()})")
    assert theirs.startswith("server v1.31")
    assert "http://127.0.0.1" in theirs


def test_without_a_server_the_engines_own_version_is_told(process: Engine) -> None:
    said = process("version", "--kubeconfig", "nowhere")
    assert (said.code, len(said.stdout.splitlines())) == (6, 1)
    assert "nowhere" in said.stderr
    assert process("version", "--client").code == 0


def test_a_server_that_is_too_old_is_said_to_be(process: Engine, tmp_path: Path) -> None:
    with Sandbox(version="1.28") as sandbox:
        path = sandbox.write_kubeconfig(tmp_path / "old")
        said = process("version", "--kubeconfig", path)
    assert said.stdout.endswith(", which is too old\n")
