"""matrix: one document, many jobs; each has a name and a hash that no other one changes."""

import re
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.api.matrix import MAX_ELEMENTS
from engine.api.model import Job
from tests.support.yaml_text import to_yaml_value
from tests.unit.builders import document, lines_of, load, load_document


def slug(text: str) -> str:
    return re.sub("[^a-z0-9]+", "-", text).strip("-")


words = st.text("abxyz019.-", min_size=1, max_size=8).filter(lambda text: text.strip(".-"))


def has_names(matrix: dict[str, list[str]]) -> bool:
    """Whether each combination has one of its own: those of 0 and 0.0 haven't."""
    names = ["-".join(map(slug, values)) for values in product(*matrix.values())]
    return len(names) == len({*names})


matrices = st.dictionaries(
    st.sampled_from(("python", "db", "os")),
    st.lists(words, min_size=1, max_size=4, unique_by=slug),
    min_size=1,
).filter(has_names)


def jobs_of(matrix: dict[str, list[str]], **spec: Any) -> dict[str, Job]:
    loaded = load_document(document("job", matrix=matrix, **spec))
    assert not loaded.problems, lines_of(loaded)
    return {job.name: job for job in loaded.jobs}


def problems_of(matrix: Any, name: str = "job", **spec: Any) -> list[str]:
    return lines_of(load_document(document(name, matrix=matrix, **spec)))


def test_each_combination_is_a_job_with_its_values_in_its_strings() -> None:
    jobs = jobs_of(
        {"python": ["3.12", "3.13"], "db": ["pg"]},
        image="python:${{ matrix.python }}",
        script='tox -e py${{ matrix.python | replace(".", "") }} ${#x[@]} {% a %} ${{ "${{" }}\n',
        env={"DB": "${{matrix.db}}"},
    )
    assert [*jobs] == ["job-3-12-pg", "job-3-13-pg"]
    spec = jobs["job-3-13-pg"].spec
    assert (spec["image"], spec["env"]) == ("python:3.13", {"DB": "pg"})
    assert spec["script"] == "tox -e py313 ${#x[@]} {% a %} ${{\n"
    assert "matrix" not in spec


@given(matrices, st.data())
def test_names_and_hashes_stay_whatever_other_elements_come_and_go(
    matrix: dict[str, list[str]], data: st.DataObject
) -> None:
    uses = {"env": {key: f"${{{{ matrix.{key} }}}}" for key in matrix}}
    jobs = jobs_of(matrix, **uses)
    assert len(jobs) == len({job.spec_hash for job in jobs.values()})
    key = data.draw(st.sampled_from([*matrix]))
    order = data.draw(st.permutations([*matrix[key], "w"]))
    more = jobs_of({**matrix, key: order}, **uses)
    assert {name: more[name].spec_hash for name in jobs} == {
        name: job.spec_hash for name, job in jobs.items()
    }
    assert all("w" in name for name in more.keys() - jobs.keys())


def test_the_hash_is_that_of_the_job_written_out() -> None:
    (job,) = jobs_of({"tag": ["v1"]}, image="tool:${{ matrix.tag }}").values()
    (alone,) = load_document(document("job-v1", image="tool:v1")).jobs
    assert (job.spec_hash, job.spec_fields) == (alone.spec_hash, alone.spec_fields)


@pytest.mark.parametrize(
    ("matrix", "words"),
    [
        ({"python": [3.10]}, 'python[0] must be a string, not the number 3.1 (quote it: "3.1'),
        ({"a b": ["x"]}, '"a b" is not a valid name'),
        ({"a": []}, "spec.matrix.a is empty"),
        ({"a": ["x", "x"]}, "spec.matrix.a names something twice"),
        ({"a": ["3.1", "3-1"]}, "spec.matrix.a[1]: a second job is named job-3-1"),
        ({"a": ["x", "++"]}, 'spec.matrix.a[1]: "++" has no letter and no digit'),
        ({"a": ["x", "y" * 45]}, "spec.matrix.a[1]: the name job-yyy"),
        ({key: [*"abcdefg"] for key in "xyz"}, f"spec.matrix makes more than {MAX_ELEMENTS} jobs"),
    ],
)
def test_a_matrix_that_makes_no_jobs_is_an_error_at_its_place(matrix: Any, words: str) -> None:
    (problem, *_) = problems_of(matrix)
    assert words in problem
    assert re.match(r"job\.yaml:1:\d+: spec\.matrix", problem)


@pytest.mark.parametrize(
    ("spec", "place", "words"),
    [
        ({"env": {"A": "${{ matrix.b }}"}}, "spec.env.A", "is no value of the matrix"),
        ({"env": {"A": "${{ secrets.b }}"}}, "spec.env.A", "is no value of the matrix"),
        ({"env": {"A": "${{ matrix.a * 9999 }}"}}, "spec.env.A", "is no value of the matrix"),
        ({"env": {"A": "${{ matrix.a | center(9) }}"}}, "spec.env.A", "is no value of the matrix"),
        ({"env": {"A": "${{ matrix. }}"}}, "spec.env.A", "is no value of the matrix"),
        ({"env": {"A": "${{ matrix.a.__class__ }}"}}, "spec.env.A", "is no value of the matrix"),
        ({"files": {"${{ matrix.a }}": "x"}}, "spec.files", "nothing is substituted into a name"),
        ({"timeout": "${{ matrix.a }}"}, "spec.timeout", '"one" is not valid'),
        ({"hold": "${{ matrix.a }}"}, "spec.hold", "must be true or false, not a string"),
    ],
)
def test_what_can_not_be_substituted_is_an_error_at_its_place(
    spec: dict[str, Any], place: str, words: str
) -> None:
    found = [one for one in problems_of({"a": ["one", "two"]}, **spec) if words in one]
    assert len(found) == 1
    assert f": {place}" in found[0]


def test_names_are_never_substituted_into() -> None:
    (problem,) = problems_of({"a": ["x"]}, name="job-${{ matrix.a }}")
    assert "metadata.name: nothing is substituted here" in problem


def test_a_job_without_a_matrix_may_not_use_one() -> None:
    (problem,) = problems_of(None, env={"A": "${{ matrix.python }}", "B": "${{ other }}"})
    assert problem.startswith("job.yaml:1:")
    assert "spec.env.A: the job has no matrix" in problem


def test_a_matrix_is_no_default() -> None:
    text = {"apiVersion": "jobs.engine/v1alpha1", "kind": "JobDefaults"}
    (problem,) = lines_of(load(to_yaml_value({**text, "spec": {"matrix": {"a": ["x"]}}})))
    assert "spec.matrix is no default" in problem


def test_others_wait_for_all_jobs_of_a_matrix_by_its_name() -> None:
    test = document("test", matrix={"python": ["3.12", "3.13"]})
    deploy = document("deploy", dependsOn=["test"])
    last = document("last", dependsOn=["test-3-12"])
    loaded = load("\n---\n".join(map(to_yaml_value, (test, deploy, last))))
    assert lines_of(loaded) == []
    circle = document("test", matrix={"python": ["3.12", "3.13"]}, dependsOn=["deploy"])
    (problem,) = lines_of(load("\n---\n".join(map(to_yaml_value, (circle, deploy)))))
    assert "the job waits for itself: ci/" in problem


def test_what_a_file_makes_of_its_matrices_is_bounded() -> None:
    many = {key: [str(n) for n in range(16)] for key in ("a", "b")}
    large = load_document(document("job", matrix=many, script="${{ matrix.a }}" + "x" * 40_000))
    assert any("more than 8,388,608 characters" in line for line in lines_of(large))
    wide = document("job", matrix=many, env={f"V{n}": "x" for n in range(100)})
    assert "spec.matrix makes more than 40,000 values" in lines_of(load_document(wide))[0]
