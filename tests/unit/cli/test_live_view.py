"""What somebody sees on a terminal while the engine works."""

import re
import threading
import time
from collections.abc import Iterator

import pytest

from engine.cli.printers.live_view import LiveView
from engine.cli.printers.text import (
    display_width,
    format_age,
    one_line,
    truncate,
    truncate_middle,
)
from engine.errors import Diagnostic, Severity, SourceLocation
from engine.refs import JobKey
from engine.status.outcome import Reason, State
from engine.telemetry.events import (
    JobUnchanged,
    JobUnmanaged,
    LeaderChanged,
    Notice,
    PodRemoved,
    SpecFixed,
    SpecProblem,
    StateChanged,
)
from engine.telemetry.redact import Redactor
from tests.unit.cli.screen import Screen


def key(name: str) -> JobKey:
    return JobKey("ci", name)


@pytest.fixture
def screen() -> Screen:
    return Screen()


@pytest.fixture
def redact() -> Redactor:
    return Redactor()


@pytest.fixture
def live(screen: Screen, redact: Redactor) -> Iterator[LiveView]:
    view = LiveView(screen, redact, colour=False, size=screen.size)
    yield view
    view.close()


def test_jobs_are_counted_and_those_under_way_are_listed(live: LiveView, screen: Screen) -> None:
    live(StateChanged(key("build"), State.STARTING))
    live(StateChanged(key("test"), State.QUEUED, Reason.QUOTA_EXCEEDED, "exceeded quota: q"))
    live(StateChanged(key("build"), State.RUNNING))
    lines = screen.wait(lambda lines: lines[:1] == ["1 Queued, 1 Running"])
    assert [re.sub(r"[0-9]s ?", "0s ", line).rstrip() for line in lines] == [
        "1 Queued, 1 Running",
        "  ci/test   Queued       0s  exceeded quota: q",
        "  ci/build  Running      0s",
    ]


def test_the_last_event_of_a_burst_is_drawn_although_none_follows(
    live: LiveView, screen: Screen
) -> None:
    for number in range(500):
        live(StateChanged(key(f"job-{number}"), State.SUCCEEDED, Reason.SUCCEEDED))
    screen.wait(lambda lines: lines[:1] == ["500 Succeeded"])


def test_the_last_ends_stay_in_sight_with_their_cause(live: LiveView, screen: Screen) -> None:
    for number in range(20):
        live(StateChanged(key(f"job-{number}"), State.SUCCEEDED, Reason.SUCCEEDED))
    live(StateChanged(key("bad"), State.FAILED, Reason.OOM_KILLED))
    lines = screen.wait(lambda lines: any("ci/bad" in line for line in lines))
    assert len(lines) == 1 + 5
    assert re.fullmatch(r"  ci/bad +Failed +\ds  OOMKilled", lines[-1])


def test_ages_go_on_while_nothing_happens(live: LiveView, screen: Screen) -> None:
    live(StateChanged(key("build"), State.RUNNING))
    screen.wait(lambda lines: len(lines) == 2 and "1s" in lines[1])


def test_ten_thousand_events_are_drawn_a_few_times_and_cost_little(
    live: LiveView, screen: Screen
) -> None:
    began = time.monotonic()
    for state in (State.STARTING, State.RUNNING):
        for number in range(5000):
            live(StateChanged(key(f"job-{number}"), state))
    took = time.monotonic() - began
    assert took < 2
    screen.wait(lambda lines: lines[:1] == ["5000 Running"])
    assert screen.frames <= 12 * (took + 2)
    assert len(screen.lines) <= 1 + 12


def test_news_stand_above_the_board_and_stay(live: LiveView, screen: Screen) -> None:
    live(StateChanged(key("build"), State.RUNNING))
    live(Notice("reading the specs again"))
    live(PodRemoved(key("build"), "build-1", "its attempt is over"))
    lines = screen.wait(lambda lines: len(lines) == 3)
    assert lines[0] == "note: reading the specs again"
    live.close()
    assert screen.lines == ["note: reading the specs again"]


def test_what_comes_right_before_the_end_is_still_told(live: LiveView, screen: Screen) -> None:
    live(Notice("one"))
    live(Notice("two"))
    live.close()
    assert screen.lines == ["note: one", "note: two"]
    live(Notice("after the end"))
    live.close()
    assert screen.lines == ["note: one", "note: two"]


def test_jobs_whose_spec_is_gone_are_no_longer_counted(live: LiveView, screen: Screen) -> None:
    live(JobUnchanged(key("a"), State.SUCCEEDED))
    live(StateChanged(key("b"), State.RUNNING))
    live(JobUnmanaged(key("b")))
    live(JobUnmanaged(key("never-seen")))
    screen.wait(lambda lines: lines == ["1 Succeeded"])


def test_problems_of_files_are_counted_until_they_are_fixed(live: LiveView, screen: Screen) -> None:
    for where in (a := SourceLocation("jobs/a.yaml", 3, 1)), SourceLocation("jobs/b.yaml"):
        live(SpecProblem(Diagnostic(where, "unknown field")))
    live(SpecProblem(Diagnostic(a, "another one")))
    live(SpecProblem("jobs: no such folder; what was read before stays in force"))
    cut = Diagnostic(SourceLocation("jobs/c.yaml", 1, 1), "timeout is cut", "", Severity.WARNING)
    live(SpecProblem(cut))
    screen.wait(lambda lines: lines[-1:] == ["2 files with problems"])
    live(SpecFixed("jobs/a.yaml"))
    screen.wait(lambda lines: lines[-1:] == ["1 file with problems"])


def test_who_leads_is_told(live: LiveView, screen: Screen) -> None:
    live(LeaderChanged(leads=False, holder="engine-0"))
    screen.wait(lambda lines: lines[-1:] == ["standing by, engine-0 leads"])
    live(LeaderChanged(leads=True, holder="engine-1"))
    screen.wait(lambda lines: lines[-1:] == ["leading"])


def test_no_line_is_wider_or_the_board_higher_than_the_terminal(redact: Redactor) -> None:
    screen = Screen(columns=30, rows=8)
    live = LiveView(screen, redact, colour=True, size=screen.size)
    for number in range(50):
        name = "名" * 20 + str(number)
        live(StateChanged(key(name), State.RUNNING, None, "测试\n" * 50 + "\x1b[2J\x07"))
    lines = screen.wait(lambda lines: len(lines) > 3)
    assert len(lines) <= 7
    assert all(display_width(line) < 30 for line in lines)
    live.close()
    assert screen.lines == []
    assert "\x07" not in screen.raw
    assert "\x1b[2J" not in screen.raw


def test_a_terminal_that_becomes_narrower_is_cleared_all_the_same(redact: Redactor) -> None:
    screen = Screen(columns=100)
    live = LiveView(screen, redact, colour=False, size=screen.size)
    live(StateChanged(key("build"), State.RUNNING, None, "x" * 80))
    screen.wait(lambda lines: len(lines) == 2)
    drawn = sum(-(-len(line) // 25) for line in screen.lines)
    screen.columns = 25
    live.close()
    assert f"\x1b[{drawn}A\x1b[J" in screen.raw


def test_secrets_are_masked(live: LiveView, screen: Screen, redact: Redactor) -> None:
    redact.add(["correct-horse"])
    live(StateChanged(key("build"), State.RUNNING, None, "said correct-horse"))
    live(Notice("correct-horse"))
    screen.wait(lambda lines: len(lines) >= 3)
    assert "correct-horse" not in screen.raw


def test_a_terminal_that_takes_nothing_keeps_no_worker_waiting(redact: Redactor) -> None:
    stopped = threading.Event()

    class Stuck(Screen):
        def write(self, text: str) -> int:
            stopped.wait(10)
            return super().write(text)

    screen = Stuck()
    live = LiveView(screen, redact, colour=False, size=screen.size)
    began = time.monotonic()
    for number in range(5000):
        live(Notice(str(number)))
    assert time.monotonic() - began < 1
    stopped.set()
    live.close()


def test_a_terminal_that_is_gone_raises_nothing(redact: Redactor) -> None:
    screen = Screen()
    live = LiveView(screen, redact, colour=False, size=screen.size)
    screen.close()
    live(Notice("x"))
    live.close()


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-1, "0s"), (5, "5s"), (119, "119s"), (120, "2m"), (7200, "2h"), (9e5, "10d")],
)
def test_an_age_is_told_in_its_largest_unit(seconds: float, text: str) -> None:
    assert format_age(seconds) == text


@pytest.mark.parametrize(
    ("text", "columns", "found"),
    [
        ("abc", 3, "abc"),
        ("abcd", 3, "ab…"),
        ("名名", 4, "名名"),
        ("名名", 3, "名…"),
        ("abc", 1, "…"),
    ],
)
def test_text_is_cut_by_the_columns_it_takes(text: str, columns: int, found: str) -> None:
    assert truncate(text, columns) == found
    assert display_width(found) <= columns


@pytest.mark.parametrize(
    ("text", "columns", "found"),
    [
        ("abcdef", 6, "abcdef"),
        ("failed to pull: connection refused", 15, "failed… refused"),
        ("名名名名", 6, "名…名"),
        ("abc", 1, "…"),
    ],
)
def test_a_long_message_keeps_its_end_which_tells_why(text: str, columns: int, found: str) -> None:
    assert truncate_middle(text, columns) == found
    assert display_width(found) <= columns


def test_one_line_holds_nothing_that_a_terminal_would_obey() -> None:
    assert one_line("a\nb\t c") == "a b c"
    assert one_line("\x1b[31mred\x07 \u202eevil") == "�[31mred� �evil"
