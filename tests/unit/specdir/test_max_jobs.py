"""`limits.maxJobs`: no file takes the place of another author's jobs."""

from pathlib import Path

import pytest

from engine.errors import Severity
from engine.specdir.load import load_specs
from engine.specdir.options import SpecOptions
from tests.unit.builders import make_config, write
from tests.unit.specdir.support import engine_yaml, lines, make_source, names, spec

LIMIT = "limits: {maxJobs: 3}\n"


def many(prefix: str, count: int) -> str:
    return "---\n".join(spec(f"{prefix}{number}") for number in range(count))


@pytest.fixture
def config_file(tmp_path: Path) -> Path:
    return write(tmp_path, "engine/engine.yaml", engine_yaml(LIMIT))


def test_a_source_with_too_many_jobs_is_one_error(tmp_path: Path) -> None:
    write(tmp_path, "a.yaml", many("a", 3))
    write(tmp_path, "b.yaml", many("b", 2))
    write(tmp_path, "c.yaml", many("c", 4))
    (problem,) = load_specs(SpecOptions(paths=(str(tmp_path),)), make_config(LIMIT)).problems
    assert problem.severity is Severity.ERROR
    assert str(problem) == (
        f"{tmp_path}/a.yaml: more jobs than the 3 that a source may have, with those of this file "
        "and of 1 more (limits.maxJobs)"
    )


def test_as_many_as_may_be_are_no_error(tmp_path: Path) -> None:
    write(tmp_path, "a.yaml", many("a", 3))
    assert load_specs(SpecOptions(paths=(str(tmp_path),)), make_config(LIMIT)).problems == ()


def test_no_large_file_keeps_small_ones_out(tmp_path: Path, config_file: Path) -> None:
    write(tmp_path, "specs/a.yaml", many("a", 3))
    write(tmp_path, "specs/b.yaml", spec("b"))
    write(tmp_path, "specs/c.yaml", spec("c"))
    snapshot = make_source(tmp_path / "specs", config_file=config_file).read()
    assert names(snapshot) == ["b", "c"]
    assert not snapshot.complete
    (line,) = lines(snapshot)
    assert line.startswith(f"{tmp_path}/specs/a.yaml: more jobs than the 3 that a source")


def test_what_is_active_stays_so_whatever_comes(tmp_path: Path, config_file: Path) -> None:
    path = write(tmp_path, "specs/z.yaml", many("z", 2))
    source = make_source(tmp_path / "specs", config_file=config_file)
    source.read()
    write(tmp_path, "specs/a.yaml", many("a", 2))
    assert names(source.read()) == ["z0", "z1"]
    path.write_text(many("z", 4))
    assert names(source.read()) == ["z0", "z1"], "its last version that fits"
    path.write_text(many("z", 1))
    assert (names(source.read()), lines(source.read())) == (["a0", "a1", "z0"], [])


def test_a_file_comes_in_once_there_is_room(tmp_path: Path, config_file: Path) -> None:
    write(tmp_path, "specs/a.yaml", many("a", 2))
    write(tmp_path, "specs/b.yaml", many("b", 2))
    source = make_source(tmp_path / "specs", config_file=config_file)
    assert names(source.read()) == ["a0", "a1"]
    (tmp_path / "specs/a.yaml").unlink()
    assert names(source.read()) == ["b0", "b1"]
