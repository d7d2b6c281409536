"""What a thread raises is contained, reported once and counted; liveness tells of each thread."""

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from engine.runtime.supervisor import SupervisedThread, Supervisor
from engine.telemetry.events import Event, InternalError


class EventRecorder:
    """A supervisor's events, and a gate that ends what the tests start."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.supervisor = Supervisor(self.events.append)
        self.over = threading.Event()


def eventually(true: Callable[[], object]) -> None:
    end = time.monotonic() + 60
    while not true():
        assert time.monotonic() < end
        time.sleep(0.005)


@pytest.fixture
def heard() -> Iterator[EventRecorder]:
    heard = EventRecorder()
    yield heard
    heard.over.set()


def test_a_panic_is_reported_once_counted_each_time_and_the_work_goes_on(
    heard: EventRecorder,
) -> None:
    calls: list[int] = []

    def run(thread: SupervisedThread) -> None:
        calls.append(len(calls))
        if len(calls) < 4:
            raise KeyError("lost")
        thread.expect(60)
        heard.over.wait()

    heard.supervisor.start("scan", run)
    eventually(lambda: len(calls) == 4)
    (event,) = heard.events
    assert isinstance(event, InternalError)
    assert (event.component, event.kind, event.message) == ("scan", "KeyError", "'lost'")
    assert 'raise KeyError("lost")' in event.traceback
    assert heard.supervisor.panics == 3
    assert heard.supervisor.liveness() == ""


def test_another_panic_is_reported_too(heard: EventRecorder) -> None:
    for error in (ValueError("one"), ValueError("two"), ValueError("one")):
        heard.supervisor.report("worker-0", error)
    assert [e.message for e in heard.events if isinstance(e, InternalError)] == ["one", "two"]


def test_a_listener_that_raises_doesnt_end_the_thread(heard: EventRecorder) -> None:
    def broken(event: Event) -> None:
        raise RuntimeError(event)

    supervisor = Supervisor(broken)
    supervisor.report("worker-0", ValueError("one"))
    assert supervisor.panics == 1


def test_a_thread_that_hangs_makes_liveness_fail_until_it_goes_on(heard: EventRecorder) -> None:
    hangs = threading.Event()

    def run(thread: SupervisedThread) -> None:
        thread.expect(0.05)
        hangs.wait()
        thread.expect(60)
        heard.over.wait()

    heard.supervisor.start("reflector", run)
    eventually(lambda: "thread reflector hangs" in heard.supervisor.liveness())
    hangs.set()
    eventually(lambda: heard.supervisor.liveness() == "")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_thread_that_died_makes_liveness_fail(heard: EventRecorder) -> None:
    def run(thread: SupervisedThread) -> None:
        raise SystemExit(thread.name)

    heard.supervisor.start("elector", run)
    eventually(lambda: heard.supervisor.liveness() == "thread elector is dead")


def test_a_thread_that_has_returned_is_no_trouble(heard: EventRecorder) -> None:
    thread = heard.supervisor.start("watch", lambda _: None)
    assert thread.join(10)
    assert heard.supervisor.liveness() == ""


def test_a_thread_that_is_about_to_begin_is_no_trouble(
    heard: EventRecorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[str] = []
    start = threading.Thread.start

    def look_first(thread: threading.Thread) -> None:
        found.append(heard.supervisor.liveness())
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", look_first)
    assert heard.supervisor.start("watch", lambda _: None).join(10)
    assert found == [""]
