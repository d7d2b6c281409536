"""`engine convert`: another tool's job as a JobSpec that the engine takes."""

import re
from contextlib import suppress
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from engine.api.yaml_reader import read_yaml
from engine.cli.convert import convert_document
from engine.errors import InvalidInputError
from tests.support.engine import CommandResult
from tests.unit.cli.conftest import Engine

OTHERS = Path(__file__).parent / "convert"
JOB = (OTHERS / "job.yaml").read_text()
CRON_JOB = (OTHERS / "cron_job.yaml").read_text()
PIPELINE = (OTHERS / "gitlab-ci.yaml").read_text()


def convert(engine: Engine, folder: Path, text: str) -> CommandResult:
    (folder / "other.yaml").write_text(text)
    return engine("convert", "other.yaml")


def specs(said: CommandResult) -> list[dict[str, Any]]:
    return [document["spec"] for document in YAML(typ="safe").load_all(said.stdout)]


@pytest.mark.parametrize("text", [JOB, CRON_JOB, PIPELINE])
def test_what_convert_prints_is_valid(tmp_path: Path, engine: Engine, text: str) -> None:
    said = convert(engine, tmp_path, text)
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs/result.yaml").write_text(said.stdout)
    assert engine("validate", "jobs").code == 0
    assert said.code == 0


def test_a_job_of_kubernetes_keeps_its_fields_under_their_names_here(
    tmp_path: Path, engine: Engine
) -> None:
    said = convert(engine, tmp_path, JOB)
    [document] = YAML(typ="safe").load_all(said.stdout)
    assert document["metadata"] == {"name": "report", "namespace": "ci", "labels": {"team": "web"}}
    spec = document["spec"]
    assert spec.pop("podPatch")["spec"] == {
        "priorityClassName": "low",
        "volumes": [{"name": "cache", "emptyDir": {}}],
        "containers": [
            {
                "name": "main",
                "volumeMounts": [{"name": "cache", "mountPath": "/cache"}],
                "env": [{"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
            }
        ],
    }
    assert spec == {
        "image": "perl:5.34.0",
        "command": ["perl", "-e", "print 1"],
        "pullPolicy": "IfNotPresent",
        "env": {"LEVEL": "1"},
        "secrets": {"TOKEN": {"fromSecret": {"name": "ci", "key": "token"}}},
        "registryCredentials": [{"fromSecret": {"name": "registry"}}],
        "initContainers": [{"name": "fetch", "image": "busybox:1.36", "args": ["fetch"]}],
        "services": [{"name": "proxy", "image": "envoy:1"}],
        "retry": {"max": 4},
        "timeout": 100,
        "ttlAfterFinished": {"success": 600, "failure": 600},
    }


def test_what_is_not_carried_over_is_a_comment_with_its_line(
    tmp_path: Path, engine: Engine
) -> None:
    said = convert(engine, tmp_path, JOB)
    assert re.findall(r"^# line (\d+), (\w+):", said.stdout, re.MULTILINE) == [
        ("9", "activeDeadlineSeconds"),
        ("11", "completions"),
        ("12", "podFailurePolicy"),
    ]
    assert "note: 1 job, 3 remarks" in said.stderr


def test_a_cron_jobs_template_becomes_a_job_and_its_schedule_a_comment(
    tmp_path: Path, engine: Engine
) -> None:
    said = convert(engine, tmp_path, CRON_JOB)
    assert specs(said) == [{"image": "alpine:3.20", "args": ["true"], "retry": {"max": 0}}]
    assert "# line 5, schedule: " in said.stdout
    assert "# line 11, restartPolicy: " in said.stdout


def test_jobs_of_a_pipeline_inherit_and_wait_as_in_gitlab(tmp_path: Path, engine: Engine) -> None:
    style, unit = specs(convert(engine, tmp_path, PIPELINE))
    assert style == {
        "image": "python:3.12",
        "script": "ruff check .\n",
        "env": {"LEVEL": "debug"},
    }
    assert unit == {
        "image": "python:3.12",
        "script": "pip install .\npytest\necho $CI_COMMIT_SHA\necho done\n",
        "env": {"LEVEL": "info", "FAST": "true"},
        "services": [
            {
                "name": "db",
                "image": "registry.example/db/postgres:16",
                "env": {"MODE": "x"},
            },
            {"name": "redis", "image": "redis:7"},
        ],
        "dependsOn": ["style-check"],
        "timeout": "1h30m",
        "retry": {"max": 2},
    }


def test_a_pipelines_keywords_without_a_counterpart_say_what_to_do_instead(
    tmp_path: Path, engine: Engine
) -> None:
    said = convert(engine, tmp_path, PIPELINE)
    unit = said.stdout.split("---\n")[2]
    assert re.findall(r"^# line \d+, (\w+): ", unit, re.MULTILINE) == [
        *("unit", "unit", "when", "artifacts", "rules"),
    ]
    assert "CI_COMMIT_SHA" in unit.partition("apiVersion")[0]
    assert "artifacts: not supported; have script copy its results to a volume" in unit


@pytest.mark.parametrize(
    "text",
    [
        "apiVersion: apps/v1\nkind: Deployment\nspec: {}\n",
        "apiVersion: batch/v1\nkind: Job\nspec: {template: {}}\n",
        "apiVersion: batch/v1\nkind: Job\nmetadata: {name: a}\nspec: {template: {spec: 5}}\n",
        "just text\n",
        "a: {script: [true], variables: [1]}\n",
        "a: [\n",
    ],
)
def test_what_is_no_job_is_an_error_at_its_place(tmp_path: Path, engine: Engine, text: str) -> None:
    said = convert(engine, tmp_path, text)
    assert (said.code, said.stdout) == (2, "")
    assert said.stderr.startswith("other.yaml:")
    assert "Traceback" not in said.stderr


WORDS = ("script", "image", "extends", "stage", "needs", "retry", "parallel", "matrix", "variables")
KEYS = st.sampled_from((*WORDS, "a", ".b", "default", "services", "timeout", "name", "when"))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 99) | st.sampled_from(("a", ".b", "1h", "x y")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(KEYS, VALUES, max_size=5))
def test_no_pipeline_is_an_internal_error(pipeline: dict[str, Any]) -> None:
    yaml = YAML(typ="safe", pure=True)
    text = StringIO()
    yaml.dump({"a": {"script": ["true"]}} | pipeline, text)
    documents, problems = read_yaml(text.getvalue().encode(), "file")
    assert not problems
    with suppress(InvalidInputError):
        assert convert_document(documents[0])
