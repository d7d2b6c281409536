"""Specs from standard input: `-`, as an argument or with -f."""

import io
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.yaml_text import to_yaml_value
from tests.unit.builders import document, write
from tests.unit.cli.conftest import Engine

Given = Callable[[str], None]


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> Given:
    """What stands on standard input."""

    def put(text: str) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))

    return put


@pytest.mark.parametrize("named", [("-",), ("-f", "-")])
def test_a_spec_is_read_from_standard_input(
    engine: Engine, given: Given, named: tuple[str, ...]
) -> None:
    given(to_yaml_value(document()))
    assert engine("validate", *named).stdout == "1 job, all valid\n"
    given(to_yaml_value(document()))
    assert "name: build-" in engine("render", *named).stdout


def test_a_mistake_there_has_a_place(engine: Engine, given: Given) -> None:
    given(
        "apiVersion: jobs.engine/v1alpha1\nkind: JobSpec\nmetadata: {name: a}\nspec: {imgae: a}\n"
    )
    said = engine("validate", "-")
    assert said.code == 2
    assert said.stdout.startswith("<stdin>:4:")


def test_it_is_one_of_several_and_its_jobs_may_be_no_other_files(
    engine: Engine, given: Given, tmp_path: Path
) -> None:
    write(tmp_path, "specs/a.yaml", document())
    given(to_yaml_value(document("other")))
    assert engine("validate", "specs", "-").stdout == "2 jobs, all valid\n"
    given(to_yaml_value(document()))
    said = engine("validate", "specs", "-")
    assert (said.code, "another job is named build" in said.stdout) == (2, True)


def test_an_engine_that_stays_has_nothing_to_watch_there(engine: Engine, given: Given) -> None:
    given(to_yaml_value(document()))
    said = engine("reconcile", "-")
    assert (said.code, "it needs --once or --dry-run" in said.stderr) == (2, True)
