"""The pages that people read: what they link to is there, and what they show is so."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from engine.cli.main import cli

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    page
    for folder in (".", "docs", "docs/reference", "examples", "tests/cluster")
    for page in (ROOT / folder).glob("*.md")
)
_PRIVATE = re.compile(r"\b(?:is|are|was|were) told\b|\bmend\w*|looked after|one's own")
_LINK = re.compile(r"\]\(([^)\s#]*)(?:#([^)\s]*))?\)")


def links_of(page: Path) -> Iterator[tuple[str, str]]:
    """Path and anchor of every link within the repository; code isn't looked at."""
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for link in _LINK.finditer(text):
        if not link[1].startswith("http"):
            yield link[1], link[2] or ""


def anchors_of(page: Path) -> set[str]:
    """As GitHub makes them of headings."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    for path, anchor in links_of(page):
        target = page.parent / path if path else page
        assert target.exists(), path
        assert not anchor or anchor in anchors_of(target), f"{path}#{anchor}"


def test_the_readme_is_short_and_shows_the_spec_that_init_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) < 200
    (shown,) = re.findall(r"^```yaml\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    monkeypatch.chdir(tmp_path)
    assert CliRunner().invoke(cli, ["init", "build"]).exit_code == 0
    written = (tmp_path / "jobs" / "build.yaml").read_text(encoding="utf-8")
    assert shown == written


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_page_begins_with_a_sentence(page: Path) -> None:
    """It says what the page is for: no list, table, picture or block of code comes before it."""
    text = re.sub(r"<!--.*?-->\n", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    title, first, *_ = re.split(r"\n{2,}", text.strip())
    assert title.startswith("# ")
    assert re.match(r"[`A-Za-z\[]", first)
    assert "." in first


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_report_and_fix_as_other_documentation_does(page: Path) -> None:
    """Private words, however apt, cost every reader a search."""
    assert _PRIVATE.findall(page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("page", ["limits.md", "engine.yaml"])
def test_every_limit_is_on_the_operators_pages(page: str) -> None:
    schema = json.loads((ROOT / "schemas" / "engineconfig.v1alpha1.schema.json").read_text())
    limits = schema["properties"]["limits"]["properties"]
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    assert [name for name in limits if name not in text] == []
