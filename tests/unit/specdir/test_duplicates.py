"""Two files can't both have a job: both are in error, and neither counts."""

from pathlib import Path

from tests.unit.builders import write
from tests.unit.specdir.support import BROKEN, job, lines, make_source, names, spec


def test_neither_of_two_files_with_one_job_counts(tmp_path: Path) -> None:
    write(tmp_path, "b.yaml", f"{spec()}---\n{spec('more')}")
    write(tmp_path, "a.yaml", spec())
    write(tmp_path, "c.yaml", spec("c"))
    snapshot = make_source(tmp_path).read()
    assert (names(snapshot), snapshot.complete) == (["c"], False)
    a, b = f"{tmp_path}/a.yaml:1:1", f"{tmp_path}/b.yaml:1:1"
    assert lines(snapshot) == [
        f"{a}: another job is named build (the second is at {b}; rename one)",
        f"{b}: a second job is named build (the first is at {a}; rename one)",
    ]


def test_it_does_not_matter_which_came_first(tmp_path: Path) -> None:
    write(tmp_path, "b.yaml", spec())
    source = make_source(tmp_path)
    source.read()
    write(tmp_path, "a.yaml", spec())
    assert source.read() == make_source(tmp_path).read()


def test_the_last_good_version_of_neither_counts(tmp_path: Path) -> None:
    write(tmp_path, "a.yaml", spec("a"))
    path = write(tmp_path, "b.yaml", spec("b"))
    source = make_source(tmp_path)
    source.read()
    path.write_text(spec("a"))
    assert (names(source.read()), len(lines(source.read()))) == ([], 2)
    path.write_text(BROKEN)
    assert (names(source.read()), len(lines(source.read()))) == ([], 3)
    path.write_text(spec("b"))
    assert (names(source.read()), lines(source.read())) == (["a", "b"], [])


def test_a_broken_file_still_has_the_jobs_of_its_last_good_version(tmp_path: Path) -> None:
    path = write(tmp_path, "a.yaml", spec())
    source = make_source(tmp_path)
    source.read()
    path.write_text(BROKEN)
    write(tmp_path, "b.yaml", spec())
    snapshot = source.read()
    assert (names(snapshot), len(lines(snapshot))) == ([], 3)


def test_each_of_three_files_with_one_job_is_in_error_once(tmp_path: Path) -> None:
    for name in "abc":
        write(tmp_path, f"{name}.yaml", spec())
    reported = lines(make_source(tmp_path).read())
    assert [line.split(":")[0] for line in reported] == [
        f"{tmp_path}/{name}.yaml" for name in "abc"
    ]


def test_when_the_first_goes_the_second_comes_into_force(tmp_path: Path) -> None:
    first = write(tmp_path, "a.yaml", spec())
    second = write(tmp_path, "b.yaml", spec())
    source = make_source(tmp_path)
    source.read()
    first.unlink()
    snapshot = source.read()
    assert job(snapshot).place.file == str(second)
    assert lines(snapshot) == []


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
