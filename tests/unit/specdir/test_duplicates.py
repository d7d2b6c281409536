"""Two files can't both have a job: the one in force stays."""

from pathlib import Path

from tests.unit.builders import write
from tests.unit.specdir.support import job, lines, make_source, names, spec


def test_at_first_the_first_by_place_wins(tmp_path: Path) -> None:
    write(tmp_path, "b.yaml", spec())
    first = write(tmp_path, "a.yaml", spec())
    snapshot = make_source(tmp_path).read()
    assert job(snapshot).place.file == str(first)
    (line,) = lines(snapshot)
    assert line.startswith(f"{tmp_path}/b.yaml:1:1: a second job is named build (the first is at ")


def test_a_newcomer_does_not_replace_the_job_in_force(tmp_path: Path) -> None:
    write(tmp_path, "b.yaml", spec())
    source = make_source(tmp_path)
    first = source.read()
    write(tmp_path, "a.yaml", spec())
    snapshot = source.read()
    assert job(snapshot) is job(first)
    (line,) = lines(snapshot)
    assert line.startswith(f"{tmp_path}/a.yaml:1:1: a second job")


def test_when_the_first_goes_the_second_comes_into_force(tmp_path: Path) -> None:
    first = write(tmp_path, "a.yaml", spec())
    second = write(tmp_path, "b.yaml", spec())
    source = make_source(tmp_path)
    source.read()
    first.unlink()
    snapshot = source.read()
    assert job(snapshot).place.file == str(second)
    assert lines(snapshot) == []


def test_a_file_that_takes_anothers_name_keeps_its_last_good_version(tmp_path: Path) -> None:
    write(tmp_path, "a.yaml", spec("a"))
    path = write(tmp_path, "b.yaml", spec("b"))
    source = make_source(tmp_path)
    first = source.read()
    path.write_text(spec("a"))
    snapshot = source.read()
    assert snapshot.jobs == first.jobs
    assert len(lines(snapshot)) == 1


def test_two_files_may_swap_their_jobs(tmp_path: Path) -> None:
    one, two = write(tmp_path, "a.yaml", spec("a")), write(tmp_path, "b.yaml", spec("b"))
    source = make_source(tmp_path)
    source.read()
    one.write_text(spec("b"))
    two.write_text(spec("a"))
    snapshot = source.read()
    assert (names(snapshot), lines(snapshot)) == (["a", "b"], [])
    assert job(snapshot, "b").place.file == str(one)


def test_a_job_may_move_to_another_file(tmp_path: Path) -> None:
    old = write(tmp_path, "z.yaml", spec())
    source = make_source(tmp_path)
    source.read()
    old.rename(tmp_path / "a.yaml")
    snapshot = source.read()
    assert (names(snapshot), lines(snapshot)) == (["build"], [])


def test_one_name_twice_in_one_file_is_an_error_of_the_file(tmp_path: Path) -> None:
    write(tmp_path, "a.yaml", f"{spec()}---\n{spec()}")
    snapshot = make_source(tmp_path).read()
    assert names(snapshot) == []
    assert len(lines(snapshot)) == 1
