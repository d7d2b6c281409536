"""What takes long says how far it is, where somebody looks on."""

import io
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.api.model import Config
from engine.cli.loading import SpecOptions, load_named
from engine.cli.printers import progress
from engine.cli.printers.progress import ProgressLine
from engine.cli.printers.prune import PruneProgress
from engine.prune.result import PruneAction, PruneEntry
from engine.refs import Ref
from tests.unit.builders import document, write
from tests.unit.cli.screen import Screen

ENTRY = PruneEntry(Ref("Pod", "ci", "build-1"), PruneAction.DELETED, "ttl 1s, age 2s")


class Terminal(Screen):
    def isatty(self) -> bool:
        return True


def on_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Not as a fixture: pytest has its own stderr again when the test begins."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    return terminal


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if half a second had passed."""
    monkeypatch.setattr(progress, "_MOMENT", 0.0)
    monkeypatch.setattr(progress, "_PAUSE", 0.0)


def keep_showing(line: ProgressLine, text: str, until: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not until():
        assert time.monotonic() < deadline
        line.show(text)
        time.sleep(0.02)


def test_what_takes_long_says_how_far_it_is_and_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = on_terminal(monkeypatch)
    begun = time.monotonic()
    with ProgressLine() as line:
        keep_showing(line, "reading", lambda: any("reading, " in row for row in terminal.lines))
        assert time.monotonic() - begun >= 0.5
    assert terminal.lines == []
    assert terminal.has_cursor
    line.show("after the end")
    assert "after" not in terminal.raw


def test_what_is_done_in_a_moment_shows_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = on_terminal(monkeypatch)
    with ProgressLine() as line:
        line.show("reading")
    assert terminal.raw == ""


@pytest.mark.parametrize("term", ["dumb", "no terminal"])
def test_nothing_is_shown_where_nothing_can_be_redrawn(
    monkeypatch: pytest.MonkeyPatch, at_once: None, term: str
) -> None:
    out = Terminal() if term == "dumb" else io.StringIO()
    monkeypatch.setattr(sys, "stderr", out)
    monkeypatch.setenv("TERM", term)
    with ProgressLine() as line:
        line.show("reading")
    assert out.getvalue() == getattr(out, "raw", "") == ""


def test_reading_many_files_says_how_many_of_how_many(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    said: list[str] = []
    monkeypatch.setattr(ProgressLine, "show", lambda _line, text: said.append(text))
    for name in "abc":
        write(tmp_path, f"{name}.yaml", document(name=name))
    load_named(SpecOptions((str(tmp_path),), "", None), Config())
    assert said == [f"reading specs: {number} of 3 files" for number in (1, 2, 3)]


def test_pruning_says_how_much_it_has_looked_at_and_deleted(
    monkeypatch: pytest.MonkeyPatch, at_once: None
) -> None:
    terminal = on_terminal(monkeypatch)
    pruning = PruneProgress(beside_lines=True)
    with pruning.line:
        pruning.on_page(1500)
        pruning.on_entry(ENTRY)
        words = "pruning: 1,500 objects looked at, 1 deleted, "
        terminal.wait(lambda lines: any(line.startswith(words) for line in lines))
    assert terminal.lines == []


def test_pruning_says_nothing_more_once_objects_are_listed_on_the_same_terminal(
    monkeypatch: pytest.MonkeyPatch, at_once: None
) -> None:
    terminal = on_terminal(monkeypatch)
    pruning = PruneProgress(beside_lines=False)
    pruning.on_page(1500)
    terminal.wait(lambda lines: any("1,500" in line for line in lines))
    pruning.on_entry(ENTRY)
    assert terminal.lines == []
    written = terminal.raw
    pruning.on_page(1500)
    assert terminal.raw == written
