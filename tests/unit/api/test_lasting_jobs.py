"""Specs whose objects are to stay: `ttl: forever`, `hold`, and annotations that won't do it."""

import math

import pytest

from engine.api.model import Config
from tests.unit.builders import lines_of, load, load_texts, make_config, make_job, source

HEAD = "apiVersion: jobs.engine/v1alpha1\nkind: JobSpec\n"
SPEC = "spec: {image: alpine:3.20}\n"
WORDS = (
    "neither ends nor keeps what the engine makes, and a cleaner that obeys it may delete the pod "
    "of a running job (set spec.ttl in its place)"
)


def annotated(name: str, job: str = "build") -> str:
    return f"{HEAD}metadata: {{name: {job}, annotations: {{{name}: 1h}}}}\n{SPEC}"


def test_a_job_may_last_for_ever() -> None:
    assert make_job(ttl="forever").ttl == math.inf


@pytest.mark.parametrize("field", ["timeout", "startTimeout"])
def test_it_may_not_run_or_wait_for_ever(field: str) -> None:
    (line,) = lines_of(load(f"{HEAD}metadata: {{name: a}}\nspec: {{image: b, {field}: forever}}\n"))
    assert f"spec.{field}" in line


def test_what_is_no_time_is_told_what_may_be_said() -> None:
    (line,) = lines_of(load(f"{HEAD}metadata: {{name: a}}\nspec: {{image: b, ttl: ever}}\n"))
    assert line.endswith(
        "(use seconds, such as 11700, or units, such as 90s, 3h15m, 7d or 1w, or forever)"
    )


def test_the_operator_may_say_it_for_all_jobs() -> None:
    config = make_config("defaults: {ttl: forever, hold: true}")
    job = make_job(config=config)
    assert (job.ttl, job.spec["hold"]) == (math.inf, True)
    assert make_job(config=config, ttl="1h", hold=False).ttl == 3600


@pytest.mark.parametrize(
    "name", ["cleaner.kubernetes.gitlab.org/ttl", "pod-cleanup.gitlab.com/ttl", "janitor/ttl"]
)
def test_a_ttl_for_another_cleaner_is_a_warning_that_names_our_own(name: str) -> None:
    loaded = load(annotated(name))
    assert lines_of(loaded) == [f"job.yaml:3:39: warning: metadata.annotations: {name} {WORDS}"]
    assert len(loaded.jobs) == 1


def test_so_is_one_that_the_operator_has_named_and_no_other() -> None:
    config = make_config("prune: {annotations: [example.com/ttl]}")
    assert len(lines_of(load(annotated("example.com/ttl"), config))) == 1
    assert lines_of(load(annotated("example.com/ttl"))) == []


def test_one_in_the_defaults_of_a_folder_is_told_once_for_all_jobs() -> None:
    defaults = annotated("janitor/ttl").replace("JobSpec", "JobDefaults")
    defaults = defaults.replace("name: build, ", "").replace(SPEC, "")
    texts = [source(defaults, "defaults.yaml")]
    texts += [source(f"{HEAD}metadata: {{name: {n}}}\n{SPEC}", f"{n}.yaml") for n in "ab"]
    loaded = load_texts(texts, Config(), "ci")
    assert len(loaded.jobs) == 2
    (line,) = lines_of(loaded)
    assert line.startswith("defaults.yaml:3:")
