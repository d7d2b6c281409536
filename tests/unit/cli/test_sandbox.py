"""`engine sandbox`: where it may write its kubeconfig."""

from pathlib import Path

import pytest

from engine.cli.sandbox import command
from tests.unit.cli.conftest import Engine

REAL = '{"apiVersion": "v1", "kind": "Config", "users": [{"name": "me", "user": {"token": "x"}}]}'


def test_a_kubeconfig_that_is_no_sandboxs_is_not_written_over(
    process: Engine, tmp_path: Path
) -> None:
    file = tmp_path / "config"
    file.write_text(REAL)
    said = process("sandbox", "--write-kubeconfig", file)
    assert (said.code, said.stdout, file.read_text()) == (2, "", REAL)
    assert said.stderr == (
        f"error: {file}: this file is not a sandbox's kubeconfig; it is left as it is"
        " (name a file that isn't there yet)\n"
    )


@pytest.mark.parametrize("variable", ["ENGINE_KUBECONFIG", "ENGINE_WRITE_KUBECONFIG"])
def test_no_variable_names_the_file_that_is_written(variable: str) -> None:
    named = [
        name for option in command.params for name in ([option.envvar] if option.envvar else [])
    ]
    assert variable not in named


def test_the_flag_that_names_the_kubeconfig_to_read_names_none_to_write(
    engine: Engine, tmp_path: Path
) -> None:
    file = tmp_path / "config"
    file.write_text(REAL)
    assert engine("sandbox", "--kubeconfig", file).code == 2
    assert file.read_text() == REAL
