"""A file isn't read while a program writes it."""

import os
import time
from pathlib import Path

import pytest

from engine.specdir.parse_cache import read_file
from engine.specdir.scan import ScannedFile
from tests.unit.builders import write
from tests.unit.specdir.support import (
    BROKEN,
    age,
    job,
    lines,
    make_source,
    names,
    replace_file,
    spec,
    watching,
)


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
        assert time.monotonic() - start > 0.8


def test_a_file_that_is_left_open_is_read_after_a_while(tmp_path: Path) -> None:
    with watching(make_source(tmp_path)) as probe, (tmp_path / "a.yaml").open("w") as stream:
        start = time.monotonic()
        stream.write(spec())
        stream.flush()
        probe.read_until(lambda snapshot: names(snapshot) == ["build"])
        assert time.monotonic() - start > 0.8


def test_an_old_file_that_is_linked_into_place_is_read_at_once(tmp_path: Path) -> None:
    path = write(tmp_path, "a.yaml", spec())
    age(tmp_path)
    root = tmp_path / "specs"
    root.mkdir()
    took = []
    with watching(make_source(root)) as probe:
        for _ in range(5):
            os.link(path, root / "a.yaml")
            start = time.monotonic()
            probe.read_until(lambda snapshot: names(snapshot) == ["build"])
            took.append(time.monotonic() - start)
            (root / "a.yaml").unlink()
            probe.read_until(lambda snapshot: names(snapshot) == [])
    assert min(took) < 0.5, "on a busy machine not each time"


def test_a_file_that_is_written_again_while_it_is_read_keeps_its_jobs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, "a.yaml", f"{spec('a')}---\n{spec('b')}")
    replacing = [spec("a")]

    def read_late(found: ScannedFile) -> bytes:
        if replacing:
            path.write_text(replacing.pop())
        return read_file(found)

    with watching(make_source(tmp_path)) as probe:
        monkeypatch.setattr("engine.specdir.parse_cache.read_file", read_late)
        replace_file(path, f"{spec('a')}---\n{spec('b')}---\n{spec('c')}")
        assert names(probe.read_next()) == ["a", "b"]
        probe.read_until(lambda snapshot: names(snapshot) == ["a"])


def test_a_file_is_not_whole_because_its_folder_was_moved(tmp_path: Path) -> None:
    folder = tmp_path / "specs/web"
    folder.mkdir(parents=True)
    with (
        watching(make_source(tmp_path / "specs")) as probe,
        (folder / "a.yaml").open("w") as stream,
    ):
        stream.write(spec("a"))
        stream.flush()
        folder.rename(tmp_path / "specs/shop")
        moved = probe.read_next()
        assert (names(moved), moved.complete) == ([], False)
        stream.write(f"---\n{spec('b')}")
        stream.close()
        probe.read_until(lambda snapshot: names(snapshot) == ["a", "b"])


def test_a_file_that_is_removed_keeps_its_jobs_for_a_second(tmp_path: Path) -> None:
    path = write(tmp_path, "a.yaml", spec())
    with watching(make_source(tmp_path)) as probe:
        start = time.monotonic()
        path.unlink()
        probe.read_until(lambda snapshot: names(snapshot) == [])
        assert time.monotonic() - start > 0.8


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
