"""A file holds as a whole or not at all: until its new version is good, the old one stays."""

from pathlib import Path

from tests.unit.builders import write
from tests.unit.specdir.support import BROKEN, job, lines, make_source, names, replace_file, spec


def test_a_job_comes_with_its_file_and_goes_with_it(tmp_path: Path) -> None:
    source = make_source(tmp_path)
    assert names(source.read()) == []
    path = write(tmp_path, "web/a.yaml", spec("a"))
    write(tmp_path, "b.yml", spec("b"))
    snapshot = source.read()
    assert (names(snapshot), snapshot.files, snapshot.complete) == (["a", "b"], 2, True)
    assert {key.namespace for key in snapshot.jobs} == {"ci"}
    path.unlink()
    assert names(source.read()) == ["b"]


def test_the_same_objects_come_back_while_nothing_changes(tmp_path: Path) -> None:
    write(tmp_path, "a.yaml", spec("a"))
    path = write(tmp_path, "b.yaml", spec("b"))
    source = make_source(tmp_path)
    first = source.read()
    assert source.read() is first
    replace_file(path, spec("b", timeout="3m"))
    second = source.read()
    assert job(second, "a") is job(first, "a")
    assert (job(first, "b").timeout, job(second, "b").timeout) == (3600, 180)
    assert second.config is first.config


def test_a_file_touched_or_written_again_with_the_same_text_is_no_change(tmp_path: Path) -> None:
    path = write(tmp_path, "a.yaml", spec())
    source = make_source(tmp_path)
    first = source.read()
    path.touch()
    assert source.read() is first
    replace_file(path, spec())
    assert source.read() is first


def test_a_rename_over_a_file_is_seen_even_if_size_and_time_are_the_same(tmp_path: Path) -> None:
    path = write(tmp_path, "a.yaml", spec(timeout="3m"))
    source = make_source(tmp_path)
    source.read()
    for minutes in (4, 5, 6, 7):
        replace_file(path, spec(timeout=f"{minutes}m"))
        assert job(source.read()).timeout == minutes * 60
        path.write_text(spec(timeout=f"{minutes + 2}m"))
        assert job(source.read()).timeout == (minutes + 2) * 60


def test_a_text_of_the_same_size_written_in_the_same_instant_is_seen(tmp_path: Path) -> None:
    path = write(tmp_path, "a.yaml", spec())
    source = make_source(tmp_path)
    for count in range(40):
        minutes = count % 9 + 1
        path.write_text(spec(timeout=f"{minutes}m"))
        assert job(source.read()).timeout == minutes * 60


def test_a_broken_version_leaves_the_last_good_one_and_says_where(tmp_path: Path) -> None:
    path = write(tmp_path, "a.yaml", spec())
    source = make_source(tmp_path)
    first = source.read()
    for text, line in (
        (BROKEN, ":2:1: not valid YAML: "),
        (spec(imgae="x"), ': unknown field "spec.imgae"'),
        (spec(timeout=0), ": spec.timeout is 0"),
        (spec(image=None), ": spec.image is missing"),
        ("", None),
    ):
        path.write_text(text)
        snapshot = source.read()
        if line is None:
            assert names(snapshot) == []
            continue
        assert job(snapshot) is job(first)
        (found,) = lines(snapshot)
        assert found.startswith(f"{path}:")
        assert line in found
        assert snapshot.complete


def test_a_mended_file_comes_into_force(tmp_path: Path) -> None:
    path = write(tmp_path, "a.yaml", spec())
    source = make_source(tmp_path)
    source.read()
    path.write_text(BROKEN)
    assert lines(source.read())
    path.write_text(spec(timeout="2m"))
    snapshot = source.read()
    assert (lines(snapshot), job(snapshot).timeout) == ([], 120)


def test_the_old_text_again_brings_back_the_old_object(tmp_path: Path) -> None:
    path = write(tmp_path, "a.yaml", spec())
    source = make_source(tmp_path)
    first = source.read()
    path.write_text(BROKEN)
    source.read()
    path.write_text(spec())
    assert job(source.read()) is job(first)


def test_one_bad_job_keeps_back_the_whole_new_version_of_its_file(tmp_path: Path) -> None:
    path = write(tmp_path, "a.yaml", f"{spec('a')}---\n{spec('b')}")
    source = make_source(tmp_path)
    first = source.read()
    path.write_text(f"{spec('a', timeout='3m')}---\n{spec('b', timeout=0)}---\n{spec('c')}")
    snapshot = source.read()
    assert snapshot.jobs == first.jobs
    assert len(lines(snapshot)) == 1


def test_a_file_that_was_never_good_gives_nothing_and_nothing_may_be_pruned(tmp_path: Path) -> None:
    path = write(tmp_path, "a.yaml", f"{spec('a')}---\n{spec('b', timeout=0)}")
    write(tmp_path, "c.yaml", spec("c"))
    source = make_source(tmp_path)
    snapshot = source.read()
    assert (names(snapshot), snapshot.complete, len(lines(snapshot))) == (["c"], False, 1)
    path.unlink()
    snapshot = source.read()
    assert (names(snapshot), snapshot.complete, lines(snapshot)) == (["c"], True, [])


def test_a_broken_file_that_is_removed_takes_its_last_good_jobs_along(tmp_path: Path) -> None:
    path = write(tmp_path, "a.yaml", spec())
    source = make_source(tmp_path)
    source.read()
    path.write_text(BROKEN)
    source.read()
    path.unlink()
    snapshot = source.read()
    assert (names(snapshot), lines(snapshot), snapshot.complete) == ([], [], True)


def test_warnings_are_told_and_keep_nothing_back(tmp_path: Path) -> None:
    write(tmp_path, "a.yaml", spec(ttl="1m"))
    snapshot = make_source(tmp_path).read()
    assert names(snapshot) == ["build"]
    (line,) = lines(snapshot)
    assert "warning: spec.ttl" in line


def test_reload_reads_every_file_again_and_forgets_nothing_good(tmp_path: Path) -> None:
    write(tmp_path, "a.yaml", spec("a"))
    path = write(tmp_path, "b.yaml", spec("b"))
    source = make_source(tmp_path)
    first = source.read()
    path.write_text(BROKEN)
    source.read()
    source.reload()
    snapshot = source.read()
    assert snapshot.jobs == first.jobs
    assert all(snapshot.jobs[key] is first.jobs[key] for key in first.jobs)


def test_a_namespace_given_goes_before_the_contexts(tmp_path: Path) -> None:
    write(tmp_path, "a.yaml", spec())
    (key,) = make_source(tmp_path, namespace="mine").read().jobs
    assert key.namespace == "mine"
