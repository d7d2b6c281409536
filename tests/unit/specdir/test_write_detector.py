"""When a file counts as complete, and a missing one as removed."""

from pathlib import Path

import pytest

from engine.specdir import write_detector
from engine.specdir.scan import ScannedFile, Signature, signature_of
from engine.specdir.write_detector import WriteDetector


class Clock:
    """Of the wall, and monotonic: a test lets time pass, or sets the wall's."""

    def __init__(self) -> None:
        self.wall, self.elapsed = 1_000_000.0, 100.0

    def time(self) -> float:
        return self.wall

    def monotonic(self) -> float:
        return self.elapsed

    def wait(self, seconds: float) -> None:
        self.wall += seconds
        self.elapsed += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(write_detector, "time", clock)
    return clock


def found(signature: Signature) -> ScannedFile:
    return ScannedFile("/specs/a.yaml", "a.yaml", "/specs", signature)


def written(at: float, size: int = 10) -> Signature:
    return 1, 2, size, int(at * 1e9), int(at * 1e9)


def watching(clock: Clock, poll: float = 0.0) -> WriteDetector:
    """A detector whose first scan is over."""
    detector = WriteDetector(poll)
    detector.begin()
    clock.wait(60)
    return detector


def looks_complete(detector: WriteDetector, signature: Signature) -> bool:
    detector.begin()
    return detector.is_complete(found(signature))


def test_a_closed_file_is_complete_at_once(clock: Clock) -> None:
    detector, signature = watching(clock), written(clock.wall)
    detector.closed("/specs/a.yaml", signature)
    assert looks_complete(detector, signature)


def test_a_file_that_was_written_after_it_was_closed_is_not(clock: Clock) -> None:
    detector = watching(clock)
    detector.closed("/specs/a.yaml", written(clock.wall))
    assert not looks_complete(detector, written(clock.wall, size=20)), "the event came late"
    detector.closed("/specs/a.yaml", written(clock.wall))
    detector.opened("/specs/a.yaml")
    assert not looks_complete(detector, written(clock.wall))


def test_an_empty_file_is_about_to_be_written(clock: Clock) -> None:
    detector, signature = watching(clock), written(clock.wall, size=0)
    detector.closed("/specs/a.yaml", signature)
    assert not looks_complete(detector, signature)
    clock.wait(1.0)
    assert looks_complete(detector, signature)


def test_a_file_is_complete_once_it_is_unchanged_for_a_second(clock: Clock) -> None:
    detector = watching(clock)
    for size in range(1, 5):
        assert not looks_complete(detector, written(clock.wall, size))
        assert detector.recheck_in == pytest.approx(1.0)
        clock.wait(0.9)
    signature = written(clock.wall)
    assert not looks_complete(detector, signature)
    clock.wait(0.6)
    assert not looks_complete(detector, signature)
    assert detector.recheck_in == pytest.approx(0.4)
    clock.wait(0.4)
    assert looks_complete(detector, signature)


@pytest.mark.parametrize("poll", [0.0, 5.0])
def test_a_clock_that_is_set_while_a_file_is_written_changes_nothing(
    clock: Clock, poll: float
) -> None:
    detector, signature = watching(clock, poll), written(clock.wall)
    for seconds in (7200.0, -7200.0):
        assert not looks_complete(detector, signature)
        clock.wall += seconds
    clock.wait(max(1.0, poll))
    assert looks_complete(detector, signature)


def test_a_file_dated_ahead_of_the_clock_is_complete_once_it_is_unchanged(clock: Clock) -> None:
    detector, signature = watching(clock), written(clock.wall + 7200)
    assert not looks_complete(detector, signature)
    clock.wait(1.0)
    assert looks_complete(detector, signature)


def test_an_old_file_that_is_new_here_is_complete(clock: Clock) -> None:
    assert looks_complete(watching(clock), written(clock.wall - 60))


def test_a_date_of_a_file_servers_proves_nothing(clock: Clock) -> None:
    detector, signature = watching(clock, 5.0), written(clock.wall - 60)
    assert not looks_complete(detector, signature)
    clock.wait(4.9)
    assert not looks_complete(detector, signature)
    clock.wait(0.1)
    assert looks_complete(detector, signature)


@pytest.mark.parametrize("poll", [0.0, 5.0])
def test_of_what_is_there_at_first_only_young_files_are_waited_for(
    clock: Clock, poll: float
) -> None:
    assert looks_complete(WriteDetector(poll), written(clock.wall - 60))
    assert not looks_complete(WriteDetector(poll), written(clock.wall - 0.1))


@pytest.mark.parametrize(("poll", "seconds"), [(0.0, 1.0), (0.5, 1.0), (5.0, 5.0)])
def test_a_missing_file_is_removed_once_it_is_missing_for_long(
    clock: Clock, poll: float, seconds: float
) -> None:
    detector = watching(clock, poll)
    for wait in (seconds * 0.9, seconds * 0.1):
        detector.begin()
        assert not detector.is_removed("/specs/a.yaml")
        clock.wait(wait)
    detector.begin()
    assert detector.is_removed("/specs/a.yaml")


def test_a_file_that_is_back_is_missing_anew(clock: Clock, tmp_path: Path) -> None:
    detector = watching(clock)
    detector.begin()
    assert not detector.is_removed("/specs/a.yaml")
    clock.wait(0.9)
    assert not looks_complete(detector, written(clock.wall))
    clock.wait(0.1)
    detector.begin()
    assert not detector.is_removed("/specs/a.yaml")
    assert signature_of(str(tmp_path / "a.yaml")) == ()
