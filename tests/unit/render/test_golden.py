"""The manifests of every example, as files to read: a change of what is sent shows in a diff.

`ENGINE_UPDATE_GOLDEN=1 pytest tests/unit/render/test_golden.py` writes them anew.
"""

import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from engine.cli.main import cli

EXAMPLES = Path(__file__).parents[3] / "examples"
GOLDEN = Path(__file__).parent / "golden"
CASES = sorted(path.name for path in EXAMPLES.iterdir() if [*path.glob("*.yaml")])


@pytest.mark.parametrize("case", CASES)
def test_an_example_renders_as_it_always_has(case: str) -> None:
    done = CliRunner().invoke(
        cli, ["render", str(EXAMPLES / case), "-n", "ci", "--allow-secret-env", "EXAMPLE_*"]
    )
    assert done.exit_code == 0, done.output
    golden = GOLDEN / f"{case}.yaml"
    if os.environ.get("ENGINE_UPDATE_GOLDEN") == "1":
        golden.write_text(done.stdout, encoding="utf-8")
    assert done.stdout == golden.read_text(encoding="utf-8")


def test_no_example_has_lost_its_golden_file() -> None:
    assert sorted(path.stem for path in GOLDEN.glob("*.yaml")) == CASES
