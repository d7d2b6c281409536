"""The version stands in engine/__init__.py; where it is written again, it is the same one."""

import re
import tomllib
from pathlib import Path

import pytest

from engine import __version__
from tests.support.pages import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
NAMED = re.compile(r"(?:engine:|newTag: |rev: v|engine-(?:chart-)?)(\d+\.\d+\.\d+)(?!\d)")


def test_the_package_takes_its_version_from_there() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert project["project"]["dynamic"] == ["version"]
    assert "version" not in project["project"]
    assert project["tool"]["hatch"]["version"]["path"] == "engine/__init__.py"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_that_names_a_version_of_ours_names_this_one(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert set(NAMED.findall(text)) <= {__version__}
