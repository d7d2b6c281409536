"""--help says what is typed: examples that are possible."""

import shlex

import click
import pytest

from engine.cli.main import COMMANDS, cli, load_command
from engine.cli.options import Command
from tests.unit.cli.conftest import Engine

ROOT = click.Context(cli, info_name="engine")


def found(name: str) -> Command:
    command = load_command(name)
    assert isinstance(command, Command)
    return command


@pytest.mark.parametrize("name", COMMANDS)
def test_every_example_of_a_command_can_be_typed(name: str, engine: Engine) -> None:
    command = found(name)
    assert command.epilog
    said = engine(name, "--help").stdout
    for example in command.epilog.splitlines():
        assert f"\n  {example}\n" in said
        words = shlex.split(example.removeprefix("source <(").removesuffix(")"))
        assert words[:2] == ["engine", name]
        command.make_context(name, words[2:], ROOT).close()


def test_how_variables_are_named_is_said_once(engine: Engine) -> None:
    assert "--source is ENGINE_SOURCE" in " ".join(engine("--help").stdout.split())
    assert "ENGINE_SOURCE" not in engine("reconcile", "--help").stdout


def test_a_kind_may_be_typed_in_any_case(engine: Engine) -> None:
    assert engine("schema", "jobspec").stdout == engine("schema", "JobSpec").stdout
