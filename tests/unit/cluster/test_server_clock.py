"""The server's time is known although the clock of this machine jumps, or the machine sleeps."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from urllib3 import BaseHTTPResponse, HTTPResponse

from engine.cluster.client import Client, Endpoint, ServerClock

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
JUMPS = [timedelta(hours=2), timedelta(hours=-2)]


class Machine:
    """Time passes, and the wall clock may be set."""

    def __init__(self, wall: datetime = NOON) -> None:
        self.wall, self.boottime = wall, 5000.0
        self.server = ServerClock(lambda: self.wall, lambda: self.boottime)

    def wait(self, seconds: float) -> None:
        self.wall += timedelta(seconds=seconds)
        self.boottime += seconds

    def hear(self, date: datetime, took: float = 0.0) -> None:
        """Of an answer with that Date, so many seconds after the request."""
        self.server.update(format_datetime(date, usegmt=True), self.boottime - took)


def test_our_own_time_is_the_servers_while_they_agree() -> None:
    machine = Machine(NOON + timedelta(seconds=1.9))
    machine.hear(NOON)
    assert machine.server.now() == machine.wall


def test_a_server_whose_clock_differs_is_believed() -> None:
    machine = Machine(NOON + timedelta(hours=1))
    machine.hear(NOON)
    machine.wait(30)
    assert machine.server.now() == NOON + timedelta(seconds=30)


@pytest.mark.parametrize("jump", JUMPS)
@pytest.mark.parametrize("off", [timedelta(), timedelta(hours=1)])
def test_a_clock_that_is_set_changes_nothing(off: timedelta, jump: timedelta) -> None:
    machine = Machine(NOON + off)
    machine.hear(NOON)
    machine.wait(60)
    machine.wall += jump
    assert machine.server.now() == NOON + timedelta(seconds=60)
    machine.wait(60)
    assert machine.server.now() == NOON + timedelta(seconds=120)
    machine.hear(NOON + timedelta(seconds=120))
    assert machine.server.now() == NOON + timedelta(seconds=120)


def test_before_any_answer_our_own_time_counts() -> None:
    machine = Machine()
    machine.wait(3)
    machine.wall += timedelta(hours=2)
    assert machine.server.now() == NOON + timedelta(seconds=3)


@pytest.mark.parametrize("off", [timedelta(), timedelta(hours=1)])
def test_an_answer_that_waited_while_the_machine_slept_is_none_of_now(off: timedelta) -> None:
    machine = Machine(NOON + off)
    machine.hear(NOON)
    machine.wait(3600)
    machine.hear(NOON + timedelta(seconds=1), took=3599)
    assert machine.server.now() == NOON + timedelta(hours=1)


def test_a_server_whose_clock_is_set_is_believed() -> None:
    machine = Machine()
    for hours in (3, -3):
        date = NOON + timedelta(hours=hours)
        machine.hear(date, took=1.0)
        assert machine.server.now() == date


@pytest.mark.parametrize("date", ["", "yesterday", "Mon, 04 May 2026 12:00:00 -0000"])
def test_what_is_no_date_says_nothing(date: str) -> None:
    machine = Machine()
    machine.server.update(date, machine.boottime)
    machine.server.update(None, machine.boottime)
    assert machine.server.now() == NOON


def _answer_long_ago(*_: object, **_options: Any) -> BaseHTTPResponse:
    """A server whose clock is years behind."""
    headers = {"Date": format_datetime(NOON, usegmt=True)}
    return HTTPResponse(b"a log", headers=headers, preload_content=False)


def test_the_servers_time_is_that_of_the_beginning_of_an_answer() -> None:
    client = Client(lambda: Endpoint("http://somewhere", _answer_long_ago))
    client.download("/api/v1/namespaces/ci/pods/a/log", [])
    assert abs(client.now() - NOON) < timedelta(minutes=1)
