"""What somebody sees on a terminal while the engine works."""

import io
import re
import threading
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

import pytest
from rich.console import Console

from engine.cli.output import (
    display_width,
    sanitize_line,
    truncate_middle,
)
from engine.cli.printers.live_view import Board, LiveView
from engine.durations import format_age
from engine.refs import JobKey
from engine.status.outcome import Reason, State
from engine.telemetry.events import (
    Event,
    JobUnchanged,
    JobUnmanaged,
    LeaderChanged,
    MaskedEvent,
    Notice,
    StateChanged,
)
from engine.telemetry.redact import Redactor
from tests.unit.cli.screen import Screen

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def key(name: str) -> JobKey:
    return JobKey("ci", name)


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Screen:
    monkeypatch.setenv("COLUMNS", "81")
    monkeypatch.setenv("LINES", "24")
    return Screen()


@pytest.fixture
def redact() -> Redactor:
    return Redactor()


@pytest.fixture
def live(screen: Screen, redact: Redactor) -> Iterator[LiveView]:
    view = LiveView(screen, redact, colour=False)
    yield view
    view.close()


def failed(name: str, message: str = "exit code 3") -> StateChanged:
    return StateChanged(key(name), State.FAILED, Reason.SCRIPT_FAILED, message)


def without_ages(lines: list[str]) -> list[str]:
    return [re.sub(r" +\d+s(?=  |$)", "  -", line).rstrip() for line in lines]


def drawn(
    events: Iterable[Event], columns: int = 80, height: int = 24, jobs: int | None = None
) -> list[str]:
    """The lines of a board after `events`, ages aside."""
    board = Board(jobs)
    for event in events:
        board.apply(MaskedEvent(event), 100.0, NOW)
    console = Console(file=io.StringIO(), width=columns, legacy_windows=False)
    with console.capture() as capture:
        console.print(board.render(height, 100.0))
    return without_ages(capture.get().splitlines())


def test_jobs_are_counted_and_listed_those_that_run_before_those_that_wait(
    live: LiveView, screen: Screen
) -> None:
    live(StateChanged(key("build"), State.QUEUED, Reason.QUOTA_EXCEEDED, "exceeded quota: q"))
    live(StateChanged(key("test"), State.STARTING))
    live(StateChanged(key("test"), State.RUNNING))
    lines = screen.wait(lambda lines: lines[:1] == ["1 Running, 1 Queued"])
    assert without_ages(lines) == [
        "1 Running, 1 Queued",
        "  ci/test   Running  -",
        "  ci/build  Queued  -  exceeded quota: q",
    ]


def test_the_last_event_of_a_burst_is_drawn_although_none_follows(
    live: LiveView, screen: Screen
) -> None:
    for number in range(500):
        live(StateChanged(key(f"job-{number}"), State.SUCCEEDED, Reason.SUCCEEDED))
    screen.wait(lambda lines: lines[:1] == ["500 Succeeded"])


def test_what_failed_and_what_runs_is_not_hidden_by_two_hundred_jobs() -> None:
    events = [StateChanged(key(f"wait-{number:03}"), State.QUEUED) for number in range(170)]
    events += [
        StateChanged(key(f"good-{number:02}"), State.SUCCEEDED, Reason.SUCCEEDED)
        for number in range(21)
    ]
    events += [failed(f"bad-{number}") for number in range(3)]
    events += [StateChanged(key(f"run-{number}"), State.RUNNING) for number in range(6)]
    lines = drawn(events, 100, 12, jobs=200)
    assert lines == [
        "21 Succeeded, 3 Failed, 6 Running, 170 Queued of 200",
        *(f"  ci/bad-{number}     Failed  -  ScriptFailed: exit code 3" for number in range(3)),
        *(f"  ci/run-{number}     Running  -" for number in range(6)),
        "  ci/wait-000  Queued  -",
        "  and 190 more",
    ]


def test_many_failures_leave_room_for_what_is_under_way() -> None:
    events = [failed(f"bad-{number:02}") for number in range(50)]
    events += [StateChanged(key(f"run-{number:02}"), State.RUNNING) for number in range(50)]
    lines = drawn(events, 80, 20)
    assert sum("Running" in line for line in lines) == 1 + 12
    assert sum("Failed" in line for line in lines) == 1 + 6
    assert lines[-1] == "  and 82 more"


@pytest.mark.parametrize("height", [1, 2, 3, 4])
def test_in_the_lowest_window_the_counts_are_told_and_a_failure_comes_first(height: int) -> None:
    events = [StateChanged(key(f"run-{number:02}"), State.RUNNING) for number in range(50)]
    lines = drawn([*events, failed("bad")], 80, height)
    assert len(lines) == height
    assert lines[0] == "1 Failed, 50 Running"
    rows = [line.split()[0] for line in lines[1:-1]]
    assert rows == ["ci/bad", "ci/run-00"][: max(0, height - 2)]


def test_the_whole_height_is_used_before_a_job_is_left_out() -> None:
    events = [StateChanged(key(f"run-{number}"), State.RUNNING) for number in range(9)]
    assert len(drawn(events, 80, 10)) == 10
    assert drawn(events, 80, 9)[-1] == "  and 2 more"


def test_a_job_that_waits_for_a_quota_says_for_which() -> None:
    refused = 'pods "build-1" is forbidden: exceeded quota: compute, requested: pods=1'
    queued = StateChanged(key("build"), State.QUEUED, Reason.QUOTA_EXCEEDED, refused)
    assert drawn([queued])[1].endswith("  -  exceeded quota: compute, requested: pods=1")


def test_a_failure_is_told_once_with_its_whole_cause_and_stays(
    live: LiveView, screen: Screen
) -> None:
    cause = f"failed to pull: {'x' * 400}: connection refused"
    live(StateChanged(key("bad"), State.FAILED, Reason.IMAGE_PULL_FAILED, cause))
    for number in range(200):
        live(StateChanged(key(f"job-{number}"), State.SUCCEEDED, Reason.SUCCEEDED))
    screen.wait(lambda lines: any("200 Succeeded" in line for line in lines))
    live.close()
    assert screen.lines[0] == f"ci/bad: Failed ImagePullFailed: {cause}"
    assert sum(cause in line for line in screen.lines) == 1
    assert not any("ci/job-1:" in line for line in screen.lines)


def test_ages_go_on_while_nothing_happens(live: LiveView, screen: Screen) -> None:
    live(StateChanged(key("build"), State.RUNNING))
    screen.wait(lambda lines: len(lines) == 2 and "1s" in lines[1])


def test_ten_thousand_events_are_drawn_a_few_times_and_cost_little(
    live: LiveView, screen: Screen
) -> None:
    began, worked = time.monotonic(), time.thread_time()
    for state in (State.STARTING, State.RUNNING):
        for number in range(5000):
            live(StateChanged(key(f"job-{number}"), state))
    assert time.thread_time() - worked < 2
    screen.wait(lambda lines: lines[:1] == ["5000 Running"])
    assert screen.frames <= 12 * (time.monotonic() - began + 1)
    assert len(screen.lines) <= screen.rows


def test_news_stand_above_the_board_and_stay(screen: Screen, redact: Redactor) -> None:
    live = LiveView(screen, redact, colour=False, jobs=1)
    live(StateChanged(key("build"), State.RUNNING))
    live(Notice("reading the specs again"))
    live(Notice("pod build-1 deleted: its attempt is over", key("build"), detail=True))
    lines = screen.wait(lambda lines: len(lines) == 3)
    assert lines[0] == "note: reading the specs again"
    assert lines[1].startswith("1 Running of 1, ")
    assert not screen.has_cursor
    live.close()
    assert screen.lines == ["note: reading the specs again"]
    assert screen.has_cursor


def test_a_view_that_no_table_follows_stands_as_it_was_last_drawn(
    live: LiveView, screen: Screen
) -> None:
    live(failed("bad"))
    live(StateChanged(key("build"), State.RUNNING))
    live.close()
    assert without_ages(screen.lines) == [
        "ci/bad: Failed ScriptFailed: exit code 3",
        "1 Failed, 1 Running",
        "  ci/bad    Failed  -  ScriptFailed: exit code 3",
        "  ci/build  Running  -",
    ]
    assert screen.has_cursor


def test_what_comes_right_before_the_end_is_still_told(screen: Screen, redact: Redactor) -> None:
    live = LiveView(screen, redact, colour=False, jobs=1)
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


def test_who_leads_is_told(live: LiveView, screen: Screen) -> None:
    live(LeaderChanged(leads=False, holder="engine-0"))
    live(LeaderChanged(leads=True, holder="engine-1"))
    screen.wait(lambda lines: lines[:2] == ["standing by: engine-0 leads", "leading"])


def test_no_line_is_wider_or_the_board_higher_than_the_terminal(
    redact: Redactor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    monkeypatch.setenv("LINES", "8")
    screen = Screen(rows=8)
    live = LiveView(screen, redact, colour=True, jobs=50)
    for number in range(50):
        name = "名" * 20 + str(number)
        live(StateChanged(key(name), State.RUNNING, None, "测试\n" * 50 + "\x1b[2J\x07"))
    lines = screen.wait(lambda lines: len(lines) > 3)
    assert len(lines) <= 7
    assert all(display_width(line) <= 30 for line in lines)
    live.close()
    assert screen.lines == []
    assert "\x07" not in screen.raw
    assert "\x1b[2J" not in screen.raw


def test_names_are_in_the_colour_of_their_state_only_if_that_is_wanted(redact: Redactor) -> None:
    for colour in (True, False):
        screen = Screen()
        live = LiveView(screen, redact, colour=colour)
        live(failed("bad"))
        live.close()
        assert ("\x1b[31m" in screen.raw) is colour


def test_secrets_are_masked(live: LiveView, screen: Screen, redact: Redactor) -> None:
    redact.add(["correct-horse"], key("build"))
    live(StateChanged(key("build"), State.RUNNING, None, "said correct-horse"))
    live(Notice("correct-horse"))
    screen.wait(lambda lines: len(lines) >= 3)
    assert "correct-horse" not in screen.raw


def test_a_terminal_that_takes_nothing_keeps_no_worker_waiting(redact: Redactor) -> None:
    stopped = threading.Event()

    class Stuck(Screen):
        def write(self, text: str) -> int:
            stopped.wait(60)
            return super().write(text)

    screen = Stuck()
    live = LiveView(screen, redact, colour=False)
    began = time.monotonic()
    for number in range(5000):
        live(Notice(str(number)))
    assert time.monotonic() - began < 30
    stopped.set()
    live.close()


def test_a_terminal_that_is_gone_raises_nothing(redact: Redactor) -> None:
    screen = Screen()
    live = LiveView(screen, redact, colour=False)
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
        ("abcdef", 6, "abcdef"),
        ("failed to pull: connection refused", 15, "failed… refused"),
        ("名名名名", 6, "名…名"),
    ],
)
def test_a_long_message_keeps_its_end_which_tells_why(text: str, columns: int, found: str) -> None:
    assert truncate_middle(text, columns) == found
    assert display_width(found) <= columns


def test_one_line_holds_nothing_that_a_terminal_would_obey() -> None:
    assert sanitize_line("a\nb\t c") == "a b c"
    assert sanitize_line("\x1b[31mred\x07 \u202eevil") == "�[31mred� �evil"
