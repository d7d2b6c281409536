"""Every command that README and docs show prints what they say it prints."""

import shutil
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.cluster.fixtures import do_without
from tests.component.pages.scenes import SCENES
from tests.component.pages.stage import Stage
from tests.support.console import Command, NotRun, Scene, WrittenFile, comparable, fits, steps_of
from tests.support.pages import ROOT

PAGES = sorted(
    page
    for pattern in ("README.md", "docs/*.md", "examples/README.md")
    for page in ROOT.glob(pattern)
)
NOT_RUN = {
    "README.md": 3,
    "docs/files-or-objects.md": 1,
    "docs/demo.md": 1,
    "docs/install.md": 6,
    "docs/operations.md": 1,
    "docs/prune.md": 2,
    "docs/validation.md": 1,
}
"""Blocks that are not run here, by page: each says why, and more need a reason of their own."""


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


PLAYED = [page for page in PAGES if any(isinstance(s, Command) for s in steps_of(page.read_text()))]


@pytest.mark.parametrize("page", PLAYED, ids=name)
def test_commands_print_what_the_page_says(page: Path, tmp_path: Path) -> None:
    steps = [*steps_of(page.read_text(encoding="utf-8"))]
    needs_kubectl = any(isinstance(s, Command) and "kubectl" in s.words for s in steps)
    wrong = []
    with ExitStack() as stages:
        stage = stages.enter_context(Stage(tmp_path / "0"))
        if needs_kubectl and not shutil.which("kubectl", path=stage.environment["PATH"]):
            do_without("no kubectl, neither on PATH nor of the tests' cluster")
        for number, step in enumerate(steps, 1):
            match step:
                case Scene(scene):
                    stage = stages.enter_context(Stage(tmp_path / str(number)))
                    SCENES[scene](stage)
                case WrittenFile():
                    stage.write(step)
                case Command(line, words, told):
                    printed = stage.run(step)
                    if not fits(told, printed):
                        wrong.append(difference(f"{name(page)}:{line}: $ {words}", told, printed))
                case NotRun():
                    pass
    assert not wrong, "\n\n".join(wrong)


def difference(what: str, told: tuple[str, ...], printed: list[str]) -> str:
    lines = [what, "-- the page says:", *comparable(told), "-- printed:", *printed]
    return "\n".join(lines)


def test_what_is_not_run_says_why_and_does_not_grow() -> None:
    found: Counter[str] = Counter()
    for page in PAGES:
        for step in steps_of(page.read_text(encoding="utf-8")):
            if isinstance(step, NotRun):
                assert step.reason, f"{name(page)}:{step.line}"
                found[name(page)] += 1
    assert dict(found) == NOT_RUN


def test_every_scene_is_played_somewhere() -> None:
    steps = [step for page in PAGES for step in steps_of(page.read_text(encoding="utf-8"))]
    assert {step.name for step in steps if isinstance(step, Scene)} == set(SCENES)
