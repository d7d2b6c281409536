"""What somebody sees of a reconcile in a terminal: screens of a real one, compared with kept ones.

`ENGINE_UPDATE_GOLDEN=1` writes tests/e2e/screens anew: look at what has changed.
"""

import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from engine.sandbox import FOREVER, Run, Sandbox
from tests.cluster.errors import ClusterUnavailable
from tests.cluster.fixtures import do_without
from tests.support.engine import Engine
from tests.support.tmux import PROMPT, Lines, Tmux, open_tmux, require_tmux

pytestmark = [pytest.mark.only("sandbox"), pytest.mark.timeout(600)]

SCREENS = Path(__file__).parent / "screens"
FULL = "full"
"""A namespace with a quota that lets nobody in."""
LASTS = 600
MESSAGE = "設定ファイルが見つかりません: café"
ONCE = "engine reconcile --once ../specs; echo exit $?"
STAYING = "engine reconcile ../specs --source here; echo exit $?"


@dataclass(frozen=True)
class Cast:
    """How many jobs do what; those that don't wait run until the clock is moved."""

    bad: int
    good: int = 0
    run: int = 0
    wait: int = 0

    @property
    def count(self) -> int:
        return self.bad + self.good + self.run + self.wait

    def running(self) -> str:
        """The counts before anything has ended."""
        waiting = f", {self.wait} Queued" if self.wait else ""
        return f"{self.bad + self.good + self.run} Running{waiting} of {self.count}"

    def failed(self, number: int) -> str:
        """The counts once so many have failed, and the good ones are over."""
        running = self.bad - number + self.run
        return (
            f"{self.good} Succeeded, {number} Failed, {running} Running, {self.wait} Queued "
            f"of {self.count}"
        )


CASTS = {1: Cast(1), 20: Cast(3, 7, 6, 4), 200: Cast(3, 21, 6, 170)}
SIZES = {"120x40": (120, 40), "50x12": (50, 12)}
OpenWindow = Callable[[int, int], Tmux]


@pytest.fixture
def open_window(tmp_path: Path, engine: Engine) -> Iterator[OpenWindow]:
    """`open_window(columns, rows)`: a terminal with a shell, in a folder beside the specs."""
    try:
        require_tmux()
    except ClusterUnavailable as error:
        do_without(f"tmux: {error}")
    opened = []

    def open_one(columns: int, rows: int) -> Tmux:
        context = open_tmux(tmp_path / "window", engine, columns, rows)
        opened.append(context)
        return context.__enter__()

    yield open_one
    for context in opened:
        context.__exit__(None, None, None)


@pytest.fixture
def play(sandbox: Sandbox, engine: Engine) -> Callable[[Cast], None]:
    """`play(cast)`: specs of these jobs, and a cluster on which they do so."""
    return partial(_play, sandbox, engine)


def _play(sandbox: Sandbox, engine: Engine, cast: Cast) -> None:
    for number in range(cast.bad):
        message = MESSAGE if number == 1 else ""
        ends = Run(duration=LASTS * (number + 1), exit_code=3, message=message)
        sandbox.node.will(ends, pod=f"bad-{number}-*")
        engine.spec(f"bad-{number}", timeout="1d")
    sandbox.node.will(Run(duration=LASTS), pod="good-*")
    sandbox.node.will(Run(duration=FOREVER), pod="run-*")
    for kind, count in (("good", cast.good), ("run", cast.run)):
        for number in range(count):
            engine.spec(f"{kind}-{number:02}", timeout="1d")
    sandbox.namespace(FULL)
    sandbox.quota(FULL, "compute", pods="0")
    home, engine.namespace = engine.namespace, FULL
    for number in range(cast.wait):
        engine.spec(f"wait-{number:03}")
    engine.namespace = home
    written_at = time.time() - 60  # a file that has just been written is read a second later
    for file in engine.folder.iterdir():
        os.utime(file, (written_at, written_at))


def normalised(lines: Lines) -> Lines:
    """Without ages, which are different each time."""
    ages = [age[1] for line in lines if (age := re.search(_AGE, line))]
    widest = max(map(len, ages), default=2)
    return [_normalised(line, widest - 2) for line in lines]


_AGE = r" +(\d+[smhd])(?=  |$)"


def _normalised(line: str, wider: int) -> str:
    """`wider`: how much more room the ages take than `3s`."""
    line = re.sub(r"( of \d+), [\dmhs]+$", r"\1, ...", line)
    line = re.sub(_AGE, lambda age: "-".rjust(len(age[0]) - wider), line)
    line = re.sub(r"exit cod?e?…", "exit …", line)
    return re.sub(r"\d+\.\ds", lambda took: re.sub(r"\d", "0", took[0]), line)


def settled(window: Tmux, words: str, columns: int = 200) -> Lines:
    """The screen that has a line with as much of `words` as there is room for, and stands still."""
    seen: list[Lines] = []

    def is_settled(lines: Lines) -> bool:
        seen.append(normalised(lines))
        told = words[: columns - 2]
        return any(told in line for line in lines) and seen[-4:] == [seen[-1]] * 4

    return normalised(window.wait(is_settled, within=300))


def compare(name: str, screens: dict[str, Lines]) -> None:
    text = "\n".join("\n".join([f"=== {what}", *lines]) for what, lines in screens.items()) + "\n"
    kept = SCREENS / f"{name}.txt"
    if os.environ.get("ENGINE_UPDATE_GOLDEN"):
        kept.write_text(text, encoding="utf-8")
    assert text == kept.read_text(encoding="utf-8")


def assert_left_clean(window: Tmux, cast: Cast) -> None:
    """The terminal is as it was, and nothing that was redrawn is left in it or above it."""
    assert window.has_cursor
    history = window.history()
    assert not [line for line in history if re.match(r"  (ci|full)/|\d+ (Running|Queued)", line)]
    for number in range(cast.bad):
        told = [line for line in history if line.startswith(f"ci/bad-{number}: ")]
        assert len(told) == 1, told
        assert "Failed ScriptFailed: exit code 3" in told[0]


@pytest.mark.parametrize("count", [20, 200])
@pytest.mark.parametrize("size", SIZES)
def test_a_terminal_shows_what_failed_and_what_runs_and_is_left_clean(
    open_window: OpenWindow,
    play: Callable[[Cast], None],
    sandbox: Sandbox,
    size: str,
    count: int,
) -> None:
    columns, rows = SIZES[size]
    cast = CASTS[count]
    play(cast)
    window = open_window(columns, rows)
    window.type(ONCE)
    screens = {"running": settled(window, cast.running(), columns)}
    assert not window.has_cursor
    for number in range(1, cast.bad + 1):
        sandbox.clock.advance(LASTS)
        screens["failed"] = settled(window, cast.failed(number), columns)
    window.press("C-c")
    screens["interrupted"] = settled(window, "exit 130")
    compare(f"{size}-{count}", screens)
    assert_left_clean(window, cast)


@pytest.mark.parametrize("size", SIZES)
def test_one_job_alone_is_shown_as_well(
    open_window: OpenWindow, play: Callable[[Cast], None], sandbox: Sandbox, size: str
) -> None:
    columns, rows = SIZES[size]
    cast = CASTS[1]
    play(cast)
    window = open_window(columns, rows)
    window.type(ONCE)
    screens = {"running": settled(window, cast.running(), columns)}
    window.press("C-c")
    screens["interrupted"] = settled(window, "exit 130")
    window.type(f"clear; {ONCE}")
    settled(window, cast.running(), columns)
    sandbox.clock.advance(LASTS)
    screens["failed"] = settled(window, "exit 1")
    compare(f"{size}-1", screens)
    assert_left_clean(window, cast)


@pytest.mark.parametrize("ends", [signal.SIGINT, signal.SIGTERM])
def test_an_engine_that_stays_leaves_what_had_failed_in_sight(
    open_window: OpenWindow, play: Callable[[Cast], None], sandbox: Sandbox, ends: int
) -> None:
    cast = Cast(2, 3, 2, 3)
    play(cast)
    window = open_window(120, 40)
    window.type(STAYING)
    settled(window, cast.running())
    for number in range(1, cast.bad + 1):
        sandbox.clock.advance(LASTS)
        settled(window, cast.failed(number))
    if ends == signal.SIGINT:
        window.press("C-c")
        lines = settled(window, "exit 130")
    else:
        window.send_signal(ends)
        lines = settled(window, "exit 0")
    compare(f"staying-{signal.Signals(ends).name}", {"ended": lines})
    assert lines[-1] == PROMPT
    assert window.has_cursor
