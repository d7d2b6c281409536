"""The clock: timers in order, time that stands still, and time that is pushed."""

from __future__ import annotations

import threading
from datetime import UTC, datetime

import pytest

from engine.sandbox.clock import Clock, parse_rfc3339, rfc3339


def test_timers_run_in_the_order_of_their_times_and_see_them() -> None:
    clock = Clock(start=datetime(2024, 1, 1, tzinfo=UTC), speed=0)
    begin = clock.now()
    seen: list[tuple[str, float]] = []
    clock.call_later(20, lambda: seen.append(("b", clock.now() - begin)))
    clock.call_later(10, lambda: seen.append(("a", clock.now() - begin)))
    clock.advance(15)
    assert seen == [("a", 10.0)]
    clock.advance(15)
    assert seen == [("a", 10.0), ("b", 20.0)]
    assert clock.now() - begin == 30


def test_what_a_timer_sets_off_also_happens_within_the_advance() -> None:
    clock = Clock(speed=0)
    ticks: list[float] = []

    def tick() -> None:
        ticks.append(clock.now())
        clock.call_later(60, tick)

    clock.call_later(60, tick)
    clock.advance(3600)
    assert len(ticks) == 60


def test_a_cancelled_timer_does_nothing() -> None:
    clock = Clock(speed=0)
    seen: list[int] = []
    clock.call_later(1, lambda: seen.append(1)).cancel()
    clock.advance(2)
    assert seen == []


def broken() -> None:
    raise ZeroDivisionError


def test_a_timer_that_fails_does_not_stop_the_others(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock(speed=0)
    seen: list[int] = []
    clock.call_later(1, broken)
    clock.call_later(2, lambda: seen.append(1))
    clock.advance(3)
    assert seen == [1]
    assert "a timer failed" in caplog.text


def test_a_running_clock_runs_its_timers_itself() -> None:
    clock = Clock(speed=1000)
    done = threading.Event()
    clock.start()
    clock.call_later(50, done.set)
    assert done.wait(60)
    clock.stop()


def test_a_standing_clock_still_does_what_is_due_at_once() -> None:
    clock = Clock(speed=0)
    done = threading.Event()
    clock.start()
    clock.call_later(0, done.set)
    assert done.wait(60)
    clock.stop()


def test_time_cannot_run_backwards() -> None:
    with pytest.raises(ValueError, match="backwards"):
        Clock(speed=-1)


def test_times_are_written_and_read_back() -> None:
    assert rfc3339(parse_rfc3339("2024-02-29T12:30:00Z")) == "2024-02-29T12:30:00Z"
