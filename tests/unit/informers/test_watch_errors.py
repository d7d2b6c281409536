from engine.informers.reflector import WatchErrorReporter
from engine.telemetry.events import ErrorReported, Event, Notice


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_hundred_watches_that_lose_the_server_are_one_line_until_it_is_back() -> None:
    told: list[Event] = []
    clock = Clock()
    troubles = WatchErrorReporter(told.append, clock)
    for number in range(100):
        troubles(f"watch of /api/v1/namespaces/n{number}/pods: connection refused")
    clock.now = 42.0
    troubles.recovered()
    troubles.recovered()
    assert [type(event) for event in told] == [ErrorReported, Notice]
    assert "back after 42 s" in str(told[1])


def test_another_cause_is_told_at_once_and_the_same_one_after_five_minutes() -> None:
    told: list[Event] = []
    clock = Clock()
    troubles = WatchErrorReporter(told.append, clock)
    for words in ("connection refused", "forbidden", "connection refused"):
        troubles(f"watch of /pods: {words}")
    assert len(told) == 2
    clock.now = 300.0
    troubles("watch of /pods: connection refused")
    assert len(told) == 3


def test_nothing_is_told_while_nothing_was_wrong() -> None:
    told: list[Event] = []
    WatchErrorReporter(told.append).recovered()
    assert told == []
