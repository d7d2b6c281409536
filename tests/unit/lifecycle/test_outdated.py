"""Jobs that ran with other defaults: which fields, and when it is no matter."""

from typing import Any

import pytest
from msgspec.structs import replace

from engine.api.model import Config, Job
from engine.lifecycle.outdated import explain_outdated, outdated_fields
from engine.lifecycle.record import Record
from engine.status.outcome import Reason
from tests.support.yaml_text import to_yaml_value
from tests.unit.builders import API_VERSION, NO_CONFIG, document, load_texts, make_config, source
from tests.unit.lifecycle.states import attempt, finished, record


def under(defaults: dict[str, Any], config: Config = NO_CONFIG, **spec: Any) -> Job:
    """A job in a folder with these JobDefaults."""
    whole = {"apiVersion": API_VERSION, "kind": "JobDefaults", "spec": defaults}
    texts = [
        source(to_yaml_value(whole), "defaults.yaml"),
        source(to_yaml_value(document("build", **spec)), "job.yaml"),
    ]
    loaded = load_texts(texts, config, "ci")
    (job,) = loaded.jobs
    return job


def ran(job: Job) -> Record:
    return finished(job=job, defaulted_fields=job.defaulted_fields)


@pytest.mark.parametrize(
    ("before", "now", "fields"),
    [
        ({"image": "busybox:1.36"}, {"image": "busybox:1.37"}, ("spec.image",)),
        ({"image": "a"}, {"image": "a", "env": {"LEVEL": "debug"}}, ("spec.env",)),
        ({"image": "a", "env": {"LEVEL": "debug"}}, {"image": "a"}, ("spec.env",)),
        ({"image": "a", "template": "job"}, {"image": "a"}, ()),
        ({"image": "a", "ttl": "1h", "timeout": "5m", "retry": {"max": 1}}, {"image": "a"}, ()),
        ({"image": "a", "pullPolicy": "Never"}, {"image": "a", "pullPolicy": "Always"}, ()),
        (
            {"image": "a", "secrets": {"T": {"value": "one"}}},
            {"image": "a", "secrets": {"T": {"value": "two"}}},
            (),
        ),
        (
            {"image": "a", "secrets": {"T": {"value": "one"}}},
            {"image": "a", "secrets": {"U": {"value": "one"}}},
            ("spec.secrets",),
        ),
    ],
)
def test_a_changed_default_is_told_where_it_says_what_runs(
    before: dict[str, Any], now: dict[str, Any], fields: tuple[str, ...]
) -> None:
    old, new = under(before, image=None), under(now, image=None)
    assert old.spec_hash == new.spec_hash, "a default never starts a run"
    assert outdated_fields(new, ran(old)) == fields
    assert outdated_fields(old, ran(old)) == ()


def test_what_the_spec_says_itself_is_no_matter_of_defaults() -> None:
    old, new = under({"image": "a", "env": {"A": "1"}}), under({"image": "b", "env": {"A": "2"}})
    assert outdated_fields(new, ran(old)) == ("spec.env",), "the image is the spec's own"
    old, new = (under({"env": {"A": level}}, env={"A": "0"}) for level in "12")
    assert outdated_fields(new, ran(old)) == ()


def test_the_operators_defaults_count_as_those_of_a_folder() -> None:
    old, new = (under({}, make_config(f"defaults: {{env: {{A: {n!r}}}}}")) for n in "12")
    assert outdated_fields(new, ran(old)) == ("spec.env",)


def test_a_job_that_never_had_a_pod_or_whose_spec_has_changed_ran_with_no_other_defaults() -> None:
    old, new = under({"image": "a"}, image=None), under({"image": "b"}, image=None)
    for known in (None, record(job=old), ran(old).again(), finished(job=under({"image": "a"}))):
        assert outdated_fields(new, known) == ()
    refused = finished(Reason.ADMISSION_REFUSED, job=old)
    assert outdated_fields(new, replace(refused, attempts=(attempt(uid=""),))) == ()


def test_a_running_job_counts_and_its_next_attempt_runs_with_the_new_defaults() -> None:
    old, new = under({"image": "a"}, image=None), under({"image": "b"}, image=None)
    running = record(attempt(job=old), job=old, defaulted_fields=old.defaulted_fields)
    assert outdated_fields(new, running) == ("spec.image",)


def test_the_digests_of_all_fields_are_few_and_have_nothing_of_a_value() -> None:
    job = under({"image": "a", "env": {f"NAME_{n}": "secret" * 10 for n in range(90)}}, image=None)
    assert len(job.defaulted_fields) < 100
    assert "secret" not in job.defaulted_fields


def test_the_line_has_the_number_each_field_once_and_the_command() -> None:
    one, two = ("spec.image",), ("spec.env", "spec.image")
    assert explain_outdated([(), one, two], ["jobs", "more"]) == (
        "2 jobs ran with other defaults (spec.env, spec.image):"
        " engine rerun --outdated -f jobs -f more"
    )
    assert explain_outdated([one], []).startswith("1 job ran with other defaults (spec.image): ")
    assert explain_outdated([(), ()], ["jobs"]) == ""
