"""What holds for many jobs at once: JobDefaults of folders, and the operator's engine.yaml."""

from pathlib import Path

import pytest

from tests.unit.builders import write
from tests.unit.specdir.support import (
    BROKEN,
    defaults,
    engine_yaml,
    job,
    lines,
    make_source,
    names,
    spec,
)


def test_changed_defaults_change_the_jobs_below_and_no_others(tmp_path: Path) -> None:
    path = write(tmp_path, "web/defaults.yaml", defaults(timeout="5m"))
    write(tmp_path, "web/deep/a.yaml", spec("a"))
    write(tmp_path, "b.yaml", spec("b"))
    source = make_source(tmp_path)
    first = source.read()
    assert (job(first, "a").timeout, job(first, "b").timeout) == (300, 3600)
    path.write_text(defaults(timeout="6m"))
    second = source.read()
    assert job(second, "a").timeout == 360
    assert job(second, "b") is job(first, "b")
    path.unlink()
    assert job(source.read(), "a").timeout == 3600


def test_defaults_that_change_nothing_for_a_job_leave_its_object(tmp_path: Path) -> None:
    path = write(tmp_path, "defaults.yaml", defaults(timeout="5m"))
    write(tmp_path, "a.yaml", spec(timeout="1m"))
    source = make_source(tmp_path)
    first = source.read()
    path.write_text(defaults(timeout="6m"))
    assert job(source.read()) is job(first)


def test_broken_defaults_keep_their_last_good_version(tmp_path: Path) -> None:
    path = write(tmp_path, "defaults.yaml", defaults(timeout="5m"))
    write(tmp_path, "a.yaml", spec("a"))
    source = make_source(tmp_path)
    first = source.read()
    for text in (BROKEN, defaults(timeuot="6m"), defaults(timeout=[])):
        path.write_text(text)
        write(tmp_path, "b.yaml", spec("b"))
        snapshot = source.read()
        assert job(snapshot, "a") is job(first, "a")
        assert job(snapshot, "b").timeout == 300
        (line,) = lines(snapshot)
        assert line.startswith(f"{path}:")


def test_defaults_that_make_a_job_invalid_leave_its_last_good_version(tmp_path: Path) -> None:
    path = write(tmp_path, "defaults.yaml", defaults(timeout="5m"))
    write(tmp_path, "a.yaml", spec("a"))
    write(tmp_path, "b.yaml", spec("b", timeout="1m"))
    source = make_source(tmp_path)
    first = source.read()
    path.write_text(defaults(timeout=0, startTimeout="2m"))
    snapshot = source.read()
    assert job(snapshot, "a") is job(first, "a")
    assert job(snapshot, "b").start_timeout == 120
    (line,) = lines(snapshot)
    assert line.startswith(f"{path}:1:")
    assert "spec.timeout is 0" in line


def test_no_job_starts_without_the_defaults_that_are_still_broken(tmp_path: Path) -> None:
    path = write(tmp_path, "web/defaults.yaml", defaults(timeuot="5m"))
    write(tmp_path, "web/deep/a.yaml", spec("a"))
    write(tmp_path, "b.yaml", spec("b"))
    source = make_source(tmp_path)
    snapshot = source.read()
    assert (names(snapshot), snapshot.complete) == (["b"], False)
    (line,) = lines(snapshot)
    assert line.startswith(f"{path}:1:")
    path.write_text(defaults(timeout="5m"))
    snapshot = source.read()
    assert (names(snapshot), lines(snapshot)) == (["a", "b"], [])
    assert job(snapshot, "a").timeout == 300


def test_two_defaults_in_a_folder_change_nothing_below_it(tmp_path: Path) -> None:
    write(tmp_path, "z.yaml", defaults(timeout="5m"))
    write(tmp_path, "a.yaml", spec("a"))
    source = make_source(tmp_path)
    first = source.read()
    second = write(tmp_path, "b.yaml", defaults(timeout="6m"))
    write(tmp_path, "web/c.yaml", spec("c"))
    snapshot = source.read()
    assert job(snapshot, "a") is job(first, "a")
    assert (names(snapshot), snapshot.complete) == (["a"], False)
    (refused,) = lines(snapshot)
    assert refused.startswith(f"{tmp_path}/z.yaml:1:1: a second JobDefaults in one folder")
    assert f"(the first is at {second}:1:1; merge them)" in refused
    (tmp_path / "z.yaml").unlink()
    snapshot = source.read()
    assert ({job.timeout for job in snapshot.jobs.values()}, lines(snapshot)) == ({360}, [])


def test_defaults_and_jobs_of_one_file_hold_together_or_not_at_all(tmp_path: Path) -> None:
    path = write(tmp_path, "both.yaml", f"{defaults(timeout='5m')}---\n{spec('a')}")
    write(tmp_path, "b.yaml", spec("b"))
    source = make_source(tmp_path)
    first = source.read()
    path.write_text(f"{defaults(timeout='6m')}---\n{spec('a', timeout=0)}")
    snapshot = source.read()
    assert all(snapshot.jobs[key] is first.jobs[key] for key in first.jobs)
    path.write_text(f"{defaults(timeout='6m')}---\n{spec('a')}")
    snapshot = source.read()
    assert {job.timeout for job in snapshot.jobs.values()} == {360}


def test_jobs_below_misspelt_defaults_are_judged_by_what_is_known_of_them(tmp_path: Path) -> None:
    path = write(tmp_path, "defaults.yaml", defaults(image="x", timeuot="5m"))
    write(tmp_path, "a.yaml", spec("a", image=None))
    write(tmp_path, "b.yaml", spec("b", timeout=0))
    source = make_source(tmp_path)
    zero, unknown = lines(source.read())
    assert "spec.timeout is 0" in zero
    assert 'unknown field "spec.timeuot"' in unknown
    path.write_text(f"kind: JobDefaults\n{BROKEN}")
    assert all(line.startswith(str(path)) for line in lines(source.read()))


@pytest.mark.parametrize("named", ["web/deep", "web/deep/a.yaml"])
def test_defaults_from_their_root_downwards_hold_and_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    path = write(tmp_path, "web/defaults.yaml", defaults(timeout="5m"))
    write(tmp_path, "defaults.yaml", defaults(timeout="1m", startTimeout="1m"))
    write(tmp_path, "web/other.yaml", "no: spec\n")
    write(tmp_path, "web/deep/a.yaml", spec())
    monkeypatch.chdir(tmp_path)
    source = make_source(named, defaults_root=Path("web"))
    snapshot = source.read()
    assert (job(snapshot).timeout, lines(snapshot), snapshot.files) == (300, [], 1)
    assert job(snapshot).start_timeout == 600
    path.write_text(BROKEN)
    assert job(source.read()).timeout == 300
    path.write_text(defaults(timeout="6m"))
    assert job(source.read()).timeout == 360


def test_a_changed_config_holds_at_once(tmp_path: Path) -> None:
    path = write(tmp_path, "engine.yaml", engine_yaml())
    write(tmp_path, "specs/a.yaml", spec("a"))
    write(tmp_path, "specs/b.yaml", spec("b", timeout="1m"))
    source = make_source(tmp_path / "specs", config_file=path)
    first = source.read()
    path.write_text(engine_yaml("defaults: {timeout: 2m}\n"))
    second = source.read()
    assert (job(first, "a").timeout, job(second, "a").timeout) == (3600, 120)
    assert job(second, "b") is job(first, "b")
    assert second.config.defaults == {"timeout": "2m"}


@pytest.mark.parametrize("text", [BROKEN, engine_yaml("limits: {maxTimeot: 1m}\n"), "", None])
def test_a_broken_or_missing_config_leaves_the_last_good_one(
    tmp_path: Path, text: str | None
) -> None:
    path = write(tmp_path, "engine.yaml", engine_yaml("defaults: {timeout: 2m}\n"))
    write(tmp_path, "specs/a.yaml", spec())
    source = make_source(tmp_path / "specs", config_file=path)
    first = source.read()
    if text is None:
        path.unlink()
    else:
        path.write_text(text)
    snapshot = source.read()
    assert snapshot.config is first.config
    assert job(snapshot) is job(first)
    (line,) = lines(snapshot)
    assert line.startswith(f"{path}:")
    path.write_text(engine_yaml("defaults: {timeout: 3m}\n"))
    snapshot = source.read()
    assert (job(snapshot).timeout, lines(snapshot)) == (180, [])


def test_a_config_that_says_the_same_is_the_same_object(tmp_path: Path) -> None:
    path = write(tmp_path, "engine.yaml", engine_yaml())
    source = make_source(tmp_path / "engine.yaml", config_file=path)
    first = source.read().config
    path.write_text(engine_yaml() + "# a word\n")
    assert source.read().config is first


def test_a_config_among_the_specs_is_no_spec(tmp_path: Path) -> None:
    path = write(tmp_path, "engine.yaml", engine_yaml())
    write(tmp_path, "a.yaml", spec())
    snapshot = make_source(tmp_path, config_file=path).read()
    assert (names(snapshot), lines(snapshot), snapshot.files) == (["build"], [], 1)


def test_tighter_limits_leave_the_last_good_job_and_say_so(tmp_path: Path) -> None:
    path = write(tmp_path, "engine.yaml", engine_yaml())
    write(tmp_path, "specs/a.yaml", spec("a"))
    write(tmp_path, "specs/b.yaml", spec("b", image="trusted/x"))
    source = make_source(tmp_path / "specs", config_file=path)
    first = source.read()
    path.write_text(engine_yaml("limits: {allowedImages: ['trusted/*']}\n"))
    snapshot = source.read()
    assert snapshot.jobs == first.jobs
    (line,) = lines(snapshot)
    assert ".image registry.example/alpine:3.20 is not allowed" in line


def test_the_contexts_namespace_must_be_allowed_too(tmp_path: Path) -> None:
    path = write(tmp_path, "engine.yaml", engine_yaml("limits: {allowedNamespaces: [web]}\n"))
    write(tmp_path, "specs/a.yaml", spec())
    source = make_source(tmp_path / "specs", config_file=path)
    snapshot = source.read()
    assert names(snapshot) == []
    (line,) = lines(snapshot)
    assert line.startswith(f"{tmp_path}/specs/a.yaml:1:1: the namespace ci is not allowed ")


@pytest.mark.parametrize(
    "kind",
    [
        r'"Job\u0044efaults"', r'"Job\x44efaults"', r'"Job\U00000044efaults"',
        '"Job\\\n  Defaults"', '"Job\\\u2028  Defaults"', "!!str JobDefaults", "|-\n  JobDefaults",
    ],
)  # fmt: skip
def test_defaults_count_everywhere_however_their_kind_is_spelt(tmp_path: Path, kind: str) -> None:
    head = "apiVersion: jobs.engine/v1alpha1\n"
    write(tmp_path, "defaults.yaml", f"{head}kind: {kind}\nspec: {{timeout: 5m}}\n")
    write(tmp_path, "below/a.yaml", spec("a"))
    beside = make_source(tmp_path).read()
    above = make_source(tmp_path / "below", defaults_root=tmp_path).read()
    assert (lines(beside), job(beside, "a").timeout) == ([], 300)
    assert (lines(above), job(above, "a").timeout) == ([], 300)


@pytest.mark.parametrize("text", [r'a: ["\u0044"', 'a: ["\\\n"', "a: [JobDefaults"])
def test_no_other_broken_file_holds_a_folder_up(tmp_path: Path, text: str) -> None:
    write(tmp_path, "a.yaml", text)
    write(tmp_path, "b.yaml", spec("b"))
    assert names(make_source(tmp_path).read()) == ["b"]


def test_a_job_that_speaks_of_defaults_holds_nobody_up(tmp_path: Path) -> None:
    write(tmp_path, "a.yaml", spec("a", script="echo 'kind: JobDefaults'", imgae="x"))
    write(tmp_path, "b.yaml", spec("b"))
    assert names(make_source(tmp_path).read()) == ["b"]
