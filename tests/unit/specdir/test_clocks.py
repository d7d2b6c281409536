"""What the clock shows, and what a file is dated, says little of whether somebody writes it."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from engine.specdir.clocks import Clocks
from engine.specdir.source import DirectorySource
from tests.unit.builders import write
from tests.unit.specdir.support import SUPERVISOR, age, make_source, names, spec

HOURS = 3600.0
POLL = 0.5


class Stand:
    """Clocks that stand still but for what a test does; the kernel dates files by its own."""

    def __init__(self) -> None:
        self._wall, self._monotonic = float(time.time_ns()), 1000.0
        self.clocks = Clocks(lambda: int(self._wall), lambda: self._monotonic)

    def wait(self, seconds: float) -> None:
        self.set(seconds)
        self._monotonic += seconds

    def set(self, seconds: float) -> None:
        """Set the wall clock forward, or back."""
        self._wall += seconds * 1e9

    def date(self, path: Path) -> None:
        """What was just written there is dated by these clocks."""
        os.utime(path, ns=(int(self._wall), int(self._wall)))


@contextmanager
def started(path: Path, stand: Stand, poll: float | None = None) -> Iterator[DirectorySource]:
    source = make_source(path, poll=poll, clocks=stand.clocks)
    source.start(lambda: None, SUPERVISOR)
    try:
        source.read()
        stand.wait(5.0)
        yield source
    finally:
        source.stop()


def test_a_file_dated_ahead_of_the_clock_is_read_once_it_has_stood_still(tmp_path: Path) -> None:
    stand = Stand()
    stand.set(-2 * HOURS)
    with started(tmp_path, stand) as source, (tmp_path / "a.yaml").open("w") as stream:
        stream.write(spec())
        stream.flush()
        first = source.read()
        assert (names(first), first.complete) == ([], False)
        stand.wait(0.9)
        assert names(source.read()) == []
        stand.wait(0.1)
        snapshot = source.read()
        assert (names(snapshot), snapshot.complete) == (["build"], True)


def test_a_file_dated_ahead_of_the_clock_is_waited_for_while_it_changes(tmp_path: Path) -> None:
    stand = Stand()
    stand.set(-2 * HOURS)
    with started(tmp_path, stand) as source, (tmp_path / "a.yaml").open("w") as stream:
        for line in spec().splitlines(keepends=True):
            stream.write(line)
            stream.flush()
            assert names(source.read()) == []
            stand.wait(0.9)
        assert names(source.read()) == []
        stand.wait(0.1)
        assert names(source.read()) == ["build"]


def test_a_file_dated_ahead_of_the_clock_is_read_once(tmp_path: Path) -> None:
    path = write(tmp_path, "a.yaml", spec())
    tomorrow = time.time() + 24 * HOURS
    os.utime(path, (tomorrow, tomorrow))
    time.sleep(0.03)  # a younger one could change again and look the same
    source = make_source(tmp_path)
    source.read()
    again: list[str] = []
    source.read(on_file=lambda: again.append("a file"))
    assert again == []


def test_a_file_that_is_begun_after_the_clock_was_set_back_is_waited_for(tmp_path: Path) -> None:
    """Its date is before the beginning of the watch, and yet it wasn't there by then."""
    stand = Stand()
    with started(tmp_path, stand) as source, (tmp_path / "a.yaml").open("w") as stream:
        stand.set(-2 * HOURS)
        stream.write(spec())
        stream.flush()
        stand.date(tmp_path / "a.yaml")
        assert names(source.read()) == []
        stand.wait(1.0)
        assert names(source.read()) == ["build"]


@pytest.mark.parametrize("poll", [None, 60.0])
def test_a_file_that_is_waited_for_is_so_although_the_clock_is_set_forward(
    tmp_path: Path, poll: float | None
) -> None:
    path = tmp_path / "a.yaml"
    stand = Stand()
    with started(tmp_path, stand, poll) as source, path.open("w") as stream:
        stream.write("# half of it\n")
        stream.flush()
        stand.date(path)
        assert names(source.read()) == []
        stand.wait(0.1)
        stream.write(spec())
        stream.flush()
        stand.date(path)
        stand.set(2 * HOURS)
        assert names(source.read()) == []
        stand.wait(1.0)
        assert names(source.read()) == ["build"]


def test_by_polling_what_has_looked_the_same_for_an_interval_is_read_or_is_old(
    tmp_path: Path,
) -> None:
    """However often it is scanned meanwhile, for another file's sake, or for a SIGHUP."""
    path, stand = tmp_path / "a.yaml", Stand()
    with started(tmp_path, stand, POLL) as source, path.open("w") as stream:
        for line in spec().splitlines(keepends=True):
            stream.write(line)
            stream.flush()
            stand.date(path)
            for _ in range(2):
                snapshot = source.read()
                assert (names(snapshot), snapshot.complete) == ([], False)
                stand.wait(0.2)
        stand.wait(0.1)
        snapshot = source.read()
        assert (names(snapshot), snapshot.complete) == (["build"], True)
        path.write_text("")
        stand.date(path)
        assert names(source.read()) == ["build"]
        write(tmp_path, "old/b.yaml", spec("b"))
        age(tmp_path / "old")
        assert names(source.read()) == ["b", "build"]


def test_by_polling_a_file_is_deleted_once_it_was_missing_for_an_interval(tmp_path: Path) -> None:
    path, stand = write(tmp_path, "a.yaml", spec()), Stand()
    with started(tmp_path, stand, POLL) as source:
        assert names(source.read()) == ["build"]
        path.unlink()
        for _ in range(2):
            assert names(source.read()) == ["build"]
            stand.wait(0.2)
        stand.wait(0.1)
        assert names(source.read()) == []
