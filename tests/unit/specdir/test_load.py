import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from engine.errors import UsageError
from engine.specdir.load import load_specs
from engine.specdir.options import SpecOptions
from engine.specdir.parse_cache import read_file
from engine.specdir.scan import make_roots, scan
from tests.unit.builders import NO_CONFIG, document, lines_of, write

DEFAULTS = "apiVersion: jobs.engine/v1alpha1\nkind: JobDefaults\nspec: {timeout: 7m}\n"


def names(*paths: Path) -> list[str]:
    """Names of the jobs below these paths."""
    loaded = load_specs(SpecOptions(paths=tuple(map(str, paths)), namespace="ci"), NO_CONFIG)
    assert loaded.problems == ()
    return sorted(job.name for job in loaded.jobs)


def lines(path: Path) -> list[str]:
    """What is wrong below `path`."""
    return lines_of(load_specs(SpecOptions(paths=(str(path),), namespace="ci"), NO_CONFIG))


def test_a_folder_is_read_with_all_below_it(tmp_path: Path) -> None:
    for name in ("a.yaml", "b.yml", "sub/c.yaml", "sub/deep/d.yaml"):
        write(tmp_path, name, document(Path(name).stem))
    assert names(tmp_path) == ["a", "b", "c", "d"]


def test_files_of_other_kinds_are_passed_over(tmp_path: Path) -> None:
    for name in ("a.yaml", "b.json", "c.txt", "d.yaml.bak", "e.YAML", "README.md", "yaml"):
        write(tmp_path, name, document(name[0].lower()))
    assert names(tmp_path) == ["a"]


def test_hidden_files_and_folders_are_passed_over(tmp_path: Path) -> None:
    for name in ("a.yaml", ".b.yaml", ".git/c.yaml", "..2026/d.yaml", "sub/.e.yaml"):
        write(tmp_path, name, document(Path(name).stem.strip(".")))
    assert names(tmp_path) == ["a"]


def test_a_mounted_configmap_is_read_once(tmp_path: Path) -> None:
    """Kubernetes mounts a ConfigMap as links into a hidden folder."""
    write(tmp_path, "..2026_01_01/job.yaml", document())
    (tmp_path / "..data").symlink_to("..2026_01_01")
    (tmp_path / "job.yaml").symlink_to("..data/job.yaml")
    assert names(tmp_path) == ["build"]


def test_a_file_that_is_named_twice_is_read_once(tmp_path: Path) -> None:
    path = write(tmp_path, "a.yaml", document("a"))
    assert names(tmp_path, path, path) == ["a"]


def test_the_order_is_that_of_the_names(tmp_path: Path) -> None:
    for name in ("b", "z/a", "a", "c"):
        write(tmp_path, f"{name}.yaml", document(name[-1] + name[0]))
    jobs = load_specs(SpecOptions(paths=(str(tmp_path),)), NO_CONFIG).jobs
    assert [job.name for job in jobs] == ["aa", "bb", "cc", "az"]


def test_the_defaults_beside_a_single_file_hold_for_it(tmp_path: Path) -> None:
    write(tmp_path, "defaults.yaml", DEFAULTS)
    path = write(tmp_path, "job.yaml", document())
    (job,) = load_specs(SpecOptions(paths=(str(path),)), NO_CONFIG).jobs
    assert job.timeout == 420


def test_other_specs_beside_a_single_file_are_left_out(tmp_path: Path) -> None:
    write(tmp_path, "other.yaml", document("other"))
    write(tmp_path, "broken.yaml", "a: [")
    assert names(write(tmp_path, "job.yaml", document())) == ["build"]


def test_a_spec_in_the_file_of_the_defaults_is_left_out_too(tmp_path: Path) -> None:
    write(tmp_path, "defaults.yaml", f"{DEFAULTS}---\nkind: JobSpec\n")
    assert names(write(tmp_path, "job.yaml", document())) == ["build"]


def test_the_defaults_of_a_root_hold_whichever_way_a_spec_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "defaults.yaml", DEFAULTS)
    write(tmp_path, "web/job.yaml", document())
    monkeypatch.chdir(tmp_path)
    found = set()
    for path in (".", "web", "web/job.yaml", str(tmp_path / "web")):
        (job,) = load_specs(SpecOptions(paths=(path,), defaults_root=tmp_path), NO_CONFIG).jobs
        found.add(job.timeout)
    assert found == {420}


def test_what_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as error:
        load_specs(SpecOptions(paths=(str(tmp_path / "nope"),)), NO_CONFIG)
    assert str(error.value) == f"{tmp_path}/nope: no such file or folder"


def test_an_empty_folder_has_no_jobs(tmp_path: Path) -> None:
    assert names(tmp_path) == []


def test_a_link_to_nothing_is_told_and_the_rest_is_read(tmp_path: Path) -> None:
    write(tmp_path, "a.yaml", document("a"))
    (tmp_path / "gone.yaml").symlink_to("nowhere")
    loaded = load_specs(SpecOptions(paths=(str(tmp_path),)), NO_CONFIG)
    assert len(loaded.jobs) == 1
    assert lines_of(loaded) == [f"{tmp_path}/gone.yaml: can't be read: No such file or directory"]


def test_links_that_go_round_in_circles_are_told(tmp_path: Path) -> None:
    write(tmp_path, "a.yaml", document("a"))
    (tmp_path / "loop.yaml").symlink_to("loop.yaml")
    (tmp_path / "folder").symlink_to(tmp_path)
    loaded = load_specs(SpecOptions(paths=(str(tmp_path),)), NO_CONFIG)
    assert len(loaded.jobs) == 1
    to_folder, loop = lines_of(loaded)
    assert to_folder.startswith(
        f"{tmp_path}/folder: warning: this link to a folder is not followed"
    )
    assert loop == f"{tmp_path}/loop.yaml: can't be read: Too many levels of symbolic links"


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user can reach, unlike `tmp_path`."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@contextmanager
def as_ordinary_user() -> Iterator[None]:
    """Root may read everything: be nobody for a moment."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(before)


def test_a_file_that_may_not_be_read_is_told(open_folder: Path) -> None:
    write(open_folder, "a.yaml", document("a")).chmod(0)
    write(open_folder, "b.yaml", document("b"))
    with as_ordinary_user():
        loaded = load_specs(SpecOptions(paths=(str(open_folder),)), NO_CONFIG)
    assert lines_of(loaded) == [f"{open_folder}/a.yaml: can't be read: Permission denied"]
    assert len(loaded.jobs) == 1


def test_a_folder_that_may_not_be_read_is_told(open_folder: Path) -> None:
    closed = write(open_folder, "closed/a.yaml", document("a")).parent
    closed.chmod(0)
    with as_ordinary_user():
        (line,) = lines(open_folder)
    closed.chmod(0o700)
    assert line == f"{closed}: can't be read: Permission denied"


def test_a_folder_named_like_a_spec_is_a_folder(tmp_path: Path) -> None:
    write(tmp_path, "odd.yaml/job.yaml", document())
    assert names(tmp_path) == ["build"]


def test_no_more_of_a_huge_file_is_read_than_refuses_it(tmp_path: Path) -> None:
    write(tmp_path, "huge.yaml", b"#" * (10 * 1024 * 1024))
    (found,) = scan(make_roots([str(tmp_path)])).files.values()
    assert len(read_file(found)) == 1024 * 1024 + 1


def test_a_named_pipe_among_the_specs_is_passed_over(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    write(tmp_path, "job.yaml", document())
    assert names(tmp_path) == ["build"]


@pytest.mark.parametrize("target", ["pipe", "/dev/tty", "/dev/zero", "/dev/stdin"])
def test_a_link_to_a_pipe_or_device_is_never_waited_for(tmp_path: Path, target: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    path = tmp_path / "specs/z.yaml"
    path.parent.mkdir()
    path.symlink_to(tmp_path / target)
    reader, writer = os.pipe()
    before = os.dup(0)
    os.dup2(reader, 0)
    try:
        for named in (path, path.parent):
            assert lines(named) == [f"{path}: can't be read: this is not a file"]
    finally:
        os.dup2(before, 0)
        for descriptor in (before, reader, writer):
            os.close(descriptor)


def test_a_pipe_that_is_named_itself_is_never_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "job.yaml")
    path = tmp_path / "job.yaml"
    assert lines(path) == [f"{path}: can't be read: this is not a file"]


def test_defaults_beside_a_file_are_found_however_their_kind_is_written(tmp_path: Path) -> None:
    head = '"apiVersion": "jobs.engine/v1alpha1"'
    (tmp_path / "d.yaml").write_text(f'{{{head}, "kind": "JobDefaults", "spec": {{"timeout": 7}}}}')
    (job,) = load_specs(
        SpecOptions(paths=(str(write(tmp_path, "job.yaml", document())),)), NO_CONFIG
    ).jobs
    assert job.timeout == 7


def test_a_file_in_the_place_of_a_named_folder_removes_none_of_its_jobs(tmp_path: Path) -> None:
    folder = tmp_path / "jobs"
    write(tmp_path, "jobs/a.yaml", document())
    roots = make_roots([str(folder)])
    (folder / "a.yaml").unlink()
    folder.rmdir()
    folder.write_text("")
    found = scan(roots)
    assert found.unseen == {str(folder)}
    assert [str(one) for one in found.unreadable_roots] == [
        f"{folder}: can't be read: it was a folder, and is a file now"
    ]
