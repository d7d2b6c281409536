"""A file isn't read while somebody writes it."""

import os
import time
from pathlib import Path

from tests.unit.builders import write
from tests.unit.specdir.support import BROKEN, age, job, lines, make_source, names, spec, watching


def test_a_file_is_read_once_it_is_closed(tmp_path: Path) -> None:
    text = f"{spec('a')}---\n{spec('b')}"
    with watching(make_source(tmp_path)) as probe:
        with (tmp_path / "a.yaml").open("w") as stream:
            stream.write(text[: len(text) // 2])
            stream.flush()
            write(tmp_path, "c.yaml", spec("c"))
            half = probe.read_until(lambda snapshot: names(snapshot) == ["c"])
            assert (lines(half), half.complete) == ([], False)
            stream.write(text[len(text) // 2 :])
        whole = probe.read_until(lambda snapshot: names(snapshot) == ["a", "b", "c"])
        assert whole.complete


def test_a_file_that_is_emptied_to_be_written_keeps_its_jobs(tmp_path: Path) -> None:
    path = write(tmp_path, "a.yaml", spec())
    age(tmp_path)
    with watching(make_source(tmp_path)) as probe:
        first = probe.source.read()
        with path.open("w") as stream:
            write(tmp_path, "b.yaml", spec("b"))
            during = probe.read_until(lambda snapshot: "b" in names(snapshot))
            assert job(during) is job(first)
            stream.write(spec(timeout="2m"))
        probe.read_until(lambda snapshot: job(snapshot).timeout == 120)


def test_a_file_that_stays_empty_has_no_jobs_in_the_end(tmp_path: Path) -> None:
    path = write(tmp_path, "a.yaml", spec())
    age(tmp_path)
    with watching(make_source(tmp_path)) as probe:
        start = time.monotonic()
        path.write_text("")
        probe.read_until(lambda snapshot: names(snapshot) == [])
        assert 0.8 < time.monotonic() - start < 3


def test_a_file_that_is_left_open_is_read_after_a_while(tmp_path: Path) -> None:
    with watching(make_source(tmp_path)) as probe, (tmp_path / "a.yaml").open("w") as stream:
        stream.write(spec())
        stream.flush()
        start = time.monotonic()
        probe.read_until(lambda snapshot: names(snapshot) == ["build"])
        assert 0.8 < time.monotonic() - start < 3


def test_a_hard_link_needs_nobody_to_close_it(tmp_path: Path) -> None:
    path = write(tmp_path, "a.yaml", spec())
    root = tmp_path / "specs"
    root.mkdir()
    with watching(make_source(root)) as probe:
        os.link(path, root / "a.yaml")
        start = time.monotonic()
        probe.read_until(lambda snapshot: names(snapshot) == ["build"])
        assert time.monotonic() - start < 0.5


def test_a_broken_file_is_told_of_once_it_is_closed_and_mended_after(tmp_path: Path) -> None:
    path = write(tmp_path, "a.yaml", spec())
    with watching(make_source(tmp_path)) as probe:
        path.write_text(BROKEN)
        probe.read_until(lambda snapshot: len(lines(snapshot)) == 1)
        path.write_text(spec(timeout="2m"))
        probe.read_until(lambda snapshot: lines(snapshot) == [] and job(snapshot).timeout == 120)


def test_a_file_that_is_removed_to_be_written_anew_keeps_its_jobs(tmp_path: Path) -> None:
    """As git does for each file of a checkout."""
    path = write(tmp_path, "a.yaml", spec())
    age(tmp_path)
    with watching(make_source(tmp_path)) as probe:
        first = probe.source.read()
        path.unlink()
        assert probe.source.read().jobs == first.jobs
        path.write_text(spec(timeout="2m"))
        probe.read_until(lambda snapshot: job(snapshot).timeout == 120)
        assert names(probe.settle()) == ["build"]


def test_a_renamed_file_is_one_change_and_no_second_job(tmp_path: Path) -> None:
    path = write(tmp_path, "b.yaml", spec())
    with watching(make_source(tmp_path)) as probe:
        path.rename(tmp_path / "a.yaml")
        snapshot = probe.read_next()
        assert (names(snapshot), lines(snapshot)) == (["build"], [])
        assert job(snapshot).place.file == f"{tmp_path}/a.yaml"
