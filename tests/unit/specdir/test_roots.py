"""What can't be read takes nothing away: the jobs below it stay."""

import shutil
from pathlib import Path

import pytest

from tests.unit.builders import write
from tests.unit.specdir.support import BROKEN, job, lines, make_source, names, spec
from tests.unit.specdir.test_load import as_ordinary_user, open_folder

__all__ = ["open_folder"]


def test_a_root_that_is_removed_keeps_its_jobs_until_it_is_back(tmp_path: Path) -> None:
    root = tmp_path / "specs"
    write(root, "a.yaml", spec("a"))
    source = make_source(root)
    first = source.read()
    shutil.rmtree(root)
    gone = source.read()
    assert gone.jobs == first.jobs
    assert (gone.unreadable, gone.complete) == (
        f"{root}: can't be read: No such file or directory",
        False,
    )
    write(root, "b.yaml", spec("b"))
    back = source.read()
    assert (names(back), back.unreadable, back.complete) == (["b"], "", True)


def test_a_root_that_is_not_there_yet_is_waited_for(tmp_path: Path) -> None:
    source = make_source(tmp_path / "specs")
    snapshot = source.read()
    assert (snapshot.jobs, snapshot.complete) == ({}, False)
    assert snapshot.unreadable == f"{tmp_path}/specs: can't be read: No such file or directory"
    write(tmp_path / "specs", "a.yaml", spec())
    assert names(source.read()) == ["build"]


@pytest.mark.parametrize("instead", ["loop", "dangling"])
def test_a_link_to_nowhere_where_the_root_was_takes_nothing_away(
    tmp_path: Path, instead: str
) -> None:
    root = tmp_path / "specs"
    write(root, "a.yaml", spec("a"))
    source = make_source(root)
    first = source.read()
    root.rename(tmp_path / "old")
    root.symlink_to("specs" if instead == "loop" else "nowhere")
    snapshot = source.read()
    assert snapshot.jobs == first.jobs
    assert snapshot.unreadable.startswith(f"{root}: ")
    assert not snapshot.complete
    root.unlink()
    (tmp_path / "old").rename(root)
    snapshot = source.read()
    assert (snapshot.unreadable, snapshot.complete) == ("", True)
    assert job(snapshot, "a") is job(first, "a")


def test_one_root_of_two_may_fail(tmp_path: Path) -> None:
    for name in "ab":
        write(tmp_path / name, f"{name}.yaml", spec(name))
    source = make_source(tmp_path / "a", tmp_path / "b")
    source.read()
    shutil.rmtree(tmp_path / "a")
    write(tmp_path / "b", "c.yaml", spec("c"))
    snapshot = source.read()
    assert (names(snapshot), snapshot.complete) == (["a", "b", "c"], False)


def test_a_single_file_may_be_the_root(tmp_path: Path) -> None:
    path = write(tmp_path, "a.yaml", spec("a"))
    write(tmp_path, "b.yaml", BROKEN)
    source = make_source(path)
    snapshot = source.read()
    assert (names(snapshot), lines(snapshot), snapshot.complete) == (["a"], [], True)
    path.unlink()
    snapshot = source.read()
    assert (names(snapshot), snapshot.complete) == (["a"], False)
    assert snapshot.unreadable == f"{path}: can't be read: No such file or directory"


def test_a_folder_without_permission_keeps_its_jobs(open_folder: Path) -> None:
    closed = write(open_folder, "closed/a.yaml", spec("a")).parent
    write(open_folder, "b.yaml", spec("b"))
    source = make_source(open_folder)
    first = source.read()
    closed.chmod(0)
    with as_ordinary_user():
        snapshot = source.read()
    closed.chmod(0o755)
    assert snapshot.jobs == first.jobs
    assert lines(snapshot) == [f"{closed}: can't be read: Permission denied"]
    assert (snapshot.unreadable, snapshot.complete) == ("", False)
    with as_ordinary_user():
        assert source.read().complete


def test_a_root_without_permission_keeps_its_jobs(open_folder: Path) -> None:
    root = write(open_folder, "specs/a.yaml", spec("a")).parent
    source = make_source(root)
    first = source.read()
    root.chmod(0)
    with as_ordinary_user():
        snapshot = source.read()
    root.chmod(0o755)
    assert snapshot.jobs == first.jobs
    assert snapshot.unreadable == f"{root}: can't be read: Permission denied"


def test_a_file_without_permission_keeps_its_last_good_version(open_folder: Path) -> None:
    path = write(open_folder, "a.yaml", spec("a"))
    source = make_source(open_folder)
    first = source.read()
    path.chmod(0)
    with as_ordinary_user():
        snapshot = source.read()
        assert job(snapshot, "a") is job(first, "a")
        assert lines(snapshot) == [f"{path}: can't be read: Permission denied"]
        assert snapshot.complete
    path.chmod(0o644)
    snapshot = source.read()
    assert (lines(snapshot), job(snapshot, "a")) == ([], job(first, "a"))


def test_a_sub_folder_that_is_removed_takes_its_jobs_along(tmp_path: Path) -> None:
    write(tmp_path, "web/deep/a.yaml", spec("a"))
    write(tmp_path, "b.yaml", spec("b"))
    source = make_source(tmp_path)
    source.read()
    shutil.rmtree(tmp_path / "web")
    snapshot = source.read()
    assert (names(snapshot), snapshot.complete, lines(snapshot)) == (["b"], True, [])


def test_a_link_that_leads_nowhere_any_more_keeps_the_last_good_version(tmp_path: Path) -> None:
    target = write(tmp_path, "store/a.yaml", spec("a"))
    root = tmp_path / "specs"
    root.mkdir()
    (root / "a.yaml").symlink_to(target)
    source = make_source(root)
    first = source.read()
    target.unlink()
    snapshot = source.read()
    assert job(snapshot, "a") is job(first, "a")
    assert lines(snapshot) == [f"{root}/a.yaml: can't be read: No such file or directory"]
    (root / "a.yaml").unlink()
    assert names(source.read()) == []


def test_a_bug_that_one_file_brings_out_stops_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "a.yaml", spec("a"))
    path = write(tmp_path, "b.yaml", spec("b"))
    source = make_source(tmp_path)
    first = source.read()

    def stumble(*_: object) -> None:
        raise RuntimeError("oh")

    path.write_text(spec("b", timeout="2m"))
    monkeypatch.setattr("engine.specdir.compile.build_job", stumble)
    snapshot = source.read()
    assert snapshot.jobs == first.jobs
    (line,) = lines(snapshot)
    assert line.startswith(f"{path}: internal error: RuntimeError at test_roots.py:")
    assert "oh" not in line, "what it says may be a secret"


def test_many_files_give_a_sign_of_life_each_when_they_are_read(tmp_path: Path) -> None:
    for number in range(5):
        write(tmp_path, f"{number}.yaml", spec(f"job-{number}"))
    source, signs = make_source(tmp_path), list[None]()
    source.read(lambda: signs.append(None))
    assert len(signs) >= 5
