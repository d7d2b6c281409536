"""--help says what is typed: examples that are possible, values by name, long lists in sections."""

import shlex

import click
import pytest

from engine.cli.main import COMMANDS, cli
from engine.cli.verb import SECTIONS, Command
from tests.unit.cli.conftest import Engine

ROOT = click.Context(cli, info_name="engine")


def found(name: str) -> Command:
    command = cli.get_command(ROOT, name)
    assert isinstance(command, Command)
    return command


@pytest.mark.parametrize("name", COMMANDS)
def test_every_example_of_a_command_can_be_typed(name: str, engine: Engine) -> None:
    command = found(name)
    assert command.examples
    said = engine(name, "--help").stdout
    for example in command.examples:
        assert f"\n  {example}\n" in said
        words = shlex.split(example.removeprefix("source <(").removesuffix(")"))
        assert words[:2] == ["engine", name]
        command.make_context(name, words[2:], ROOT).close()


@pytest.mark.parametrize("name", COMMANDS)
def test_no_value_is_just_text(name: str, engine: Engine) -> None:
    said = engine(name, "--help").stdout
    assert " TEXT" not in said
    assert "INTEGER" not in said


def test_a_long_list_of_options_is_in_sections_and_a_short_one_is_not(engine: Engine) -> None:
    said = engine("reconcile", "--help").stdout
    places = [said.index(f"\n{title}:\n") for title in ("Options", *SECTIONS)]
    assert places == sorted(places)
    assert "ENGINE_NAMESPACE" not in said
    assert "--once is ENGINE_ONCE" in said
    assert "\nCluster:\n" not in engine("logs", "--help").stdout


def test_every_option_that_a_section_names_is_one_of_a_command() -> None:
    known = {parameter.name for name in COMMANDS for parameter in found(name).params}
    assert {name for names in SECTIONS.values() for name in names} <= known


def test_a_kind_may_be_typed_in_any_case(engine: Engine) -> None:
    assert engine("schema", "jobspec").stdout == engine("schema", "JobSpec").stdout
