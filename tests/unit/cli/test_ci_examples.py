"""The examples for CI systems and the pre-commit hook: valid, and every command in them exists."""

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from pre_commit.clientlib import load_manifest

from engine.cli.main import cli
from tests.support.published_schemas import require_valid
from tests.unit.builders import document, write
from tests.unit.cli.conftest import Engine

ROOT = Path(__file__).parents[3]
GITHUB = ROOT / "examples/ci/.github/workflows/jobs.yml"
GITLAB = ROOT / "examples/ci/.gitlab-ci.yml"
_VARIABLE = re.compile(r"\$\{\{.*?\}\}|\$\w+")


def read(path: Path) -> Any:
    """With `on` as the text that it is on GitHub, not as YAML 1.1's true."""
    return yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.BaseLoader)  # noqa: S506 - text alone


def typed(path: Path) -> Any:
    found = yaml.safe_load(path.read_text(encoding="utf-8"))
    return {("on" if key is True else key): value for key, value in found.items()}


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from strings(item)


def commands(path: Path) -> list[list[str]]:
    """Every `engine` command in a file, its variables filled in."""
    lines = [line for text in strings(read(path)) for line in text.splitlines()]
    found = [line for line in map(_without_exec, lines) if line.startswith("engine ")]
    plain = [_VARIABLE.sub("x", re.split(r" (?:>|\|\|) ", line)[0]) for line in found]
    return [shlex.split(line)[1:] for line in plain]


def _without_exec(line: str) -> str:
    return line.removeprefix("exec ")


def parse(arguments: list[str]) -> None:
    """Errors: click's, for a command or an option that there isn't."""
    name, *rest = arguments
    group = cli.make_context("engine", [], resilient_parsing=True)
    _, command, _ = cli.resolve_command(group, [name])
    assert command is not None, name
    command.make_context(name, rest, parent=group)


@pytest.mark.parametrize(("path", "schema"), [(GITHUB, "github-workflow"), (GITLAB, "gitlab-ci")])
def test_an_example_is_what_its_ci_system_reads(path: Path, schema: str) -> None:
    require_valid(typed(path), schema)


@pytest.mark.parametrize("path", [GITHUB, GITLAB])
def test_every_command_of_an_example_can_be_run(path: Path) -> None:
    found = commands(path)
    assert {arguments[0] for arguments in found} == {"validate", "reconcile"}
    for arguments in found:
        parse(arguments)


def test_reports_of_an_example_are_the_files_that_its_commands_write() -> None:
    for path in (GITHUB, GITLAB):
        text = path.read_text(encoding="utf-8")
        for name in re.findall(r"(?:> |--junit )(\S+)", text):
            if name.startswith(('"', "-")):
                continue
            shown = name.split("/")[0]
            assert len(re.findall(rf"\b{re.escape(shown)}\b", text)) > 1, name


def test_the_hook_of_pre_commit_is_valid_and_checks_the_files_it_is_given(
    tmp_path: Path, engine: Engine
) -> None:
    (hook,) = load_manifest(str(ROOT / ".pre-commit-hooks.yaml"))
    name, *arguments = shlex.split(hook["entry"])
    assert name == "engine"
    write(tmp_path, "jobs/defaults.yaml", {
        "apiVersion": "jobs.engine/v1alpha1", "kind": "JobDefaults", "spec": {"timeout": "5m"},
    })  # fmt: skip
    write(tmp_path, "jobs/team/a.yaml", document("a"))
    assert engine(*arguments, "jobs/team/a.yaml").code == 0
    write(tmp_path, "jobs/team/a.yaml", document("a", timeout=0))
    assert engine(*arguments, "jobs/team/a.yaml").code == 2


def test_the_problem_matcher_of_github_reads_what_validate_prints(
    tmp_path: Path, engine: Engine
) -> None:
    path = GITHUB.parents[1] / "engine-matcher.json"
    (matcher,) = json.loads(path.read_text(encoding="utf-8"))["problemMatcher"]
    (pattern,) = matcher["pattern"]
    write(tmp_path, "jobs/a.yaml", document("a", imgae="x"))
    (line,) = engine("validate", "jobs").stdout.splitlines()
    found = re.fullmatch(pattern["regexp"], line)
    assert found is not None
    assert found[pattern["file"]] == "jobs/a.yaml"
    assert found[pattern["message"]].startswith('unknown field "spec.imgae"')
    assert found[pattern["line"]].isdecimal()
