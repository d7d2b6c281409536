"""dependsOn: names that no job has, and circles, are errors at their place."""

import json
from pathlib import Path

import pytest

from engine.api.field_kinds import FieldKind, field_kind
from engine.api.model import Limits
from engine.errors import InvalidInputError
from engine.specdir.load import with_namespace
from tests.unit.builders import document, lines_of, load, make_job, write
from tests.unit.specdir.support import lines, make_source, names, spec


def found(namespace: str = "ci", **waits: object) -> list[str]:
    """Problems of jobs that wait for others, one to three lines of one file."""
    texts = [json.dumps(document(name, dependsOn=first)) for name, first in waits.items()]
    return lines_of(load("\n---\n".join(texts), namespace=namespace))


def test_jobs_may_wait_for_each_other_in_any_order_of_the_files() -> None:
    assert found(deploy=["test", {"name": "lint", "on": "finished"}], test=["lint"], lint=[]) == []
    (one, other) = make_job(dependsOn=["lint", {"name": "test", "on": "finished"}]).depends_on
    assert [(one.name, one.may_fail), (other.name, other.may_fail)] == [
        ("lint", False),
        ("test", True),
    ]


def test_an_unknown_name_is_an_error_at_its_place_and_the_nearest_one_is_named() -> None:
    (problem,) = found(deploy=["tst"], test=[])
    place, words = problem.split(": ", 1)
    text = json.dumps(document("deploy", dependsOn=["tst"]))
    column = text.index('"tst"') + 1
    assert place == f"job.yaml:1:{column}"
    assert words == "spec.dependsOn: no valid spec has the name tst (did you mean test?)"
    assert found(deploy=["x"])[0].endswith("(name its file, too, or their folder)")


def test_a_job_waits_for_no_job_of_another_namespace() -> None:
    other = document("lint")
    other["metadata"]["namespace"] = "other"
    first = json.dumps(document("deploy", dependsOn=["lint"]))
    (problem,) = lines_of(load(f"{first}\n---\n{json.dumps(other)}"))
    assert "there is one in other: a job waits for its own namespace's" in problem
    assert '"other/lint" is not valid' in found(deploy=["other/lint"])[0]


def test_a_circle_is_one_error_that_names_its_jobs() -> None:
    (problem,) = found(a=["b"], b=[{"name": "c", "on": "finished"}], c=["a"], d=["a"])
    assert problem.startswith("job.yaml:1:")
    assert "the job waits for itself: ci/a -> ci/b -> ci/c -> ci/a" in problem
    (alone,) = found(a=["a"])
    assert alone.endswith("spec.dependsOn: the job waits for itself (take it out)")
    assert len(found(a=["b"], b=["a"], c=["d"], d=["c"])) == 2


def test_where_the_namespace_is_the_contexts_it_is_judged_once_that_is_known() -> None:
    other = document("lint")
    other["metadata"]["namespace"] = "other"
    text = f"{json.dumps(document('deploy', dependsOn=['lint']))}\n---\n{json.dumps(other)}"
    loaded = load(text, namespace="")
    assert loaded.problems == ()
    assert with_namespace(loaded.jobs, "other", Limits())
    with pytest.raises(InvalidInputError, match="there is one in other"):
        with_namespace(loaded.jobs, "ci", Limits())


def test_no_version_of_a_file_counts_while_its_job_waits_for_one_that_is_not_there(
    tmp_path: Path,
) -> None:
    write(tmp_path, "deploy.yaml", spec("deploy", dependsOn=["lint"]))
    write(tmp_path, "other.yaml", spec("other", dependsOn=["deploy"]))
    source = make_source(tmp_path)
    snapshot = source.read()
    assert (names(snapshot), snapshot.complete) == (["other"], False)
    (line,) = lines(snapshot)
    assert line.startswith(f"{tmp_path}/deploy.yaml:")
    assert "no valid spec has the name lint" in line
    write(tmp_path, "lint.yaml", spec("lint"))
    assert names(make_source(tmp_path).read()) == ["deploy", "lint", "other"]


def test_the_order_is_no_part_of_what_runs() -> None:
    assert field_kind(("spec", "dependsOn")) is FieldKind.TRIED
    assert make_job(dependsOn=["a"]).spec_hash == make_job().spec_hash
    assert make_job(dependsOn=["a"]).spec_fields != make_job().spec_fields
    written_out = make_job(dependsOn=[{"name": "a", "on": "succeeded"}])
    assert written_out.spec_fields == make_job(dependsOn=["a"]).spec_fields
