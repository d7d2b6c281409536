"""A rename is told as one: the same fields that say what runs, under another name."""

from engine.lifecycle.rename import renames
from engine.refs import JobKey

A, B, C = (JobKey("ci", name) for name in "abc")
BUILD = "spec.image=11111111 spec.script=22222222 spec.timeout=33333333"


def test_a_job_that_runs_the_same_under_another_name_looks_like_a_rename() -> None:
    assert renames({B: BUILD}, {A: BUILD}) == [
        "ci/b looks like a rename of ci/a: it runs as a new job"
    ]


def test_how_it_is_tried_may_differ_and_what_runs_may_not() -> None:
    assert len(renames({B: BUILD.replace("=3", "=4")}, {A: BUILD})) == 1
    assert renames({B: BUILD.replace("=2", "=4")}, {A: BUILD}) == []


def test_one_job_is_renamed_once_and_within_its_namespace() -> None:
    assert renames({B: BUILD, C: BUILD}, {A: BUILD}) == [
        "ci/b looks like a rename of ci/a: it runs as a new job"
    ]
    assert renames({JobKey("dev", "b"): BUILD}, {A: BUILD}) == []


def test_a_record_that_says_no_fields_is_no_ones_former_name() -> None:
    assert renames({B: "", C: BUILD}, {A: ""}) == []
