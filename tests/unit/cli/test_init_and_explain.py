"""The first minutes: a spec to begin with, and what its fields mean."""

import json
from pathlib import Path

import pytest

from engine.api.kubernetes_schema import bundled_schema
from tests.unit.cli.conftest import Engine


def test_init_writes_a_spec_that_is_valid_and_the_schema_that_its_modeline_names(
    tmp_path: Path, engine: Engine
) -> None:
    said = engine("init", "build")
    assert (said.code, said.stdout) == (0, "jobs/build.yaml\n")
    modeline = (tmp_path / "jobs/build.yaml").read_text().splitlines()[0]
    before, _, named = modeline.partition("$schema=")
    assert before == "# yaml-language-server: "
    schema = tmp_path / "jobs" / named
    assert schema.read_text() == bundled_schema("JobSpec")
    json.loads(schema.read_text())
    assert engine("validate", "jobs").stdout == "1 job, all valid\n"


def test_init_leaves_what_is_there(tmp_path: Path, engine: Engine) -> None:
    engine("init")
    path = tmp_path / "jobs/hello.yaml"
    path.write_text("mine")
    schema = tmp_path / "schemas/job.v1alpha1.schema.json"
    schema.write_text("{}")
    said = engine("init")
    assert (said.code, said.stdout) == (2, "")
    assert "jobs/hello.yaml: this file exists" in said.stderr
    assert engine("init", "other").code == 0
    assert (path.read_text(), schema.read_text()) == ("mine", "{}")


@pytest.mark.parametrize("name", ["No_Good", "../x", "a: b", "x" * 49])
def test_init_writes_nothing_under_a_name_that_no_job_can_have(
    tmp_path: Path, engine: Engine, name: str
) -> None:
    said = engine("init", name)
    assert said.code == 2
    assert "metadata.name" in said.stderr or "NAME" in said.stderr
    assert [*tmp_path.iterdir()] == []


def test_explain_prints_type_default_and_meaning(engine: Engine) -> None:
    said = engine("explain", "spec.onChange")
    assert said.code == 0
    assert said.stdout.splitlines() == [
        "KIND:      JobSpec",
        "VERSION:   jobs.engine/v1alpha1",
        "FIELD:     spec.onChange <string>",
        "ONE OF:    Replace, Wait",
        "DEFAULT:   Replace",
        "CHANGE:    how it is tried: a change tries a failed job again, and never a success",
        "EXAMPLE:   Wait",
        "",
        "What happens to a running job when its spec changes.",
    ]


def test_explain_lists_the_fields_below(engine: Engine) -> None:
    said = engine("explain", "spec.services")
    assert "FIELD:     spec.services <list of mappings>" in said.stdout
    assert "FIELDS:\n  name <string> (required)\n    Name of the container.\n" in said.stdout
    assert "  script <string>\n" in engine("explain").stdout
    assert "  timeout <string or integer> (default 1h)\n" in engine("explain").stdout
    assert "  maxTtl <string or integer>" in engine("explain", "engineconfig.limits").stdout


def test_explain_knows_what_kubernetes_defines(engine: Engine) -> None:
    said = engine("explain", "spec.podPatch.spec.containers")
    assert "  imagePullPolicy <string>\n" in said.stdout


@pytest.mark.parametrize("path", ["timeout", "retry.max", "services.image"])
def test_explain_does_not_miss_a_field_whose_spec_is_not_named(engine: Engine, path: str) -> None:
    assert engine("explain", path).stdout == engine("explain", f"spec.{path}").stdout
    assert engine("explain", "metadata.name").code == 0


def test_explain_of_an_unknown_field_says_what_was_meant(engine: Engine) -> None:
    said = engine("explain", "spec.pullPolicies")
    assert (said.code, said.stdout) == (2, "")
    assert said.stderr == 'error: unknown field "spec.pullPolicies" (did you mean pullPolicy?)\n'
