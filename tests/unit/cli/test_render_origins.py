"""`engine render --show-origin`: what holds for a job, and which file says so."""

import pathlib
import re

import pytest

from tests.support.engine import CommandResult
from tests.unit.builders import document, write
from tests.unit.cli.conftest import Engine

HEAD = "apiVersion: jobs.engine/v1alpha1\nkind: "
SPEC = f"""\
{HEAD}JobSpec
metadata: {{name: build}}
spec:
  script: |
    set -x
    make test
  env: {{LEVEL: debug}}
"""
DEFAULTS = f"""\
{HEAD}JobDefaults
metadata:
  namespace: ci
  labels: {{team: web}}
spec:
  image: alpine:3.20
  timeout: 2h
  env: {{LEVEL: info, LANG: C}}
  pullPolicy: [Always, IfNotPresent]
"""
CONFIG = f"""\
{HEAD}EngineConfig
defaults:
  startTimeout: 5m
  ttlLeeway: 1m
  retry: {{max: 1}}
"""
LIMITS = """\
limits:
  maxTimeout: 1h
  maxTtl: 90m
  allowedPullPolicies: [IfNotPresent]
"""
VALUE = "hunter2-31337"


@pytest.fixture
def jobs(tmp_path: pathlib.Path) -> None:
    write(tmp_path, "jobs/ci/build.yaml", SPEC)
    write(tmp_path, "jobs/defaults.yaml", DEFAULTS)
    write(tmp_path, "engine.yaml", CONFIG)


def origins(text: str) -> dict[str, str]:
    """Where the values come from, by field."""
    rows = [re.split(r"  +", line.strip()) for line in text.splitlines()[1:]]
    return {row[0]: row[-1] for row in rows}


def values(text: str) -> dict[str, str]:
    return {row[0]: row[1] for row in (re.split(r"  +", line) for line in text.splitlines()[1:])}


@pytest.mark.usefixtures("jobs")
def test_every_value_has_the_place_where_it_was_written(engine: Engine) -> None:
    said = engine("render", "jobs", "--config", "engine.yaml", "--show-origin")
    assert (said.code, said.stderr) == (0, "")
    assert origins(said.stdout) == {
        "metadata.name": "jobs/ci/build.yaml:3:18",
        "metadata.namespace": "jobs/defaults.yaml:4:14 (JobDefaults)",
        "metadata.labels.team": "jobs/defaults.yaml:5:18 (JobDefaults)",
        "spec.script": "jobs/ci/build.yaml:5:11",
        "spec.env.LEVEL": "jobs/ci/build.yaml:8:16",
        "spec.env.LANG": "jobs/defaults.yaml:9:28 (JobDefaults)",
        "spec.image": "jobs/defaults.yaml:7:10 (JobDefaults)",
        "spec.timeout": "jobs/defaults.yaml:8:12 (JobDefaults)",
        "spec.pullPolicy": "jobs/defaults.yaml:10:15 (JobDefaults)",
        "spec.startTimeout": "engine.yaml:4:17 (EngineConfig)",
        "spec.retry.max": "engine.yaml:6:16 (EngineConfig)",
        "spec.ttl": "built-in default (startTimeout + timeout + ttlLeeway)",
        "spec.ttlLeeway": "engine.yaml:5:14 (EngineConfig)",
        "spec.template": "built-in default",
        "spec.onChange": "built-in default",
    }


def show_limited(tmp_path: pathlib.Path, engine: Engine, *options: str) -> CommandResult:
    """What is shown of the jobs under an operator's defaults and limits."""
    write(tmp_path, "engine.yaml", CONFIG + LIMITS)
    return engine("render", "jobs", "--config", "engine.yaml", "--show-origin", *options)


@pytest.mark.usefixtures("jobs")
def test_a_value_that_a_limit_cuts_has_the_limits_place(
    tmp_path: pathlib.Path, engine: Engine
) -> None:
    said = show_limited(tmp_path, engine)
    found = values(said.stdout)
    assert (found["spec.timeout"], found["spec.ttl"]) == ('"1h"', '"1h6m"')
    assert found["spec.pullPolicy"] == '["IfNotPresent"]'
    shown = origins(said.stdout)
    assert shown["spec.timeout"] == "engine.yaml:8:15 (limits.maxTimeout)"
    assert shown["spec.pullPolicy"] == "engine.yaml:10:24 (limits.allowedPullPolicies)"


def test_a_default_ttl_is_shown_as_the_limit_cuts_it(
    tmp_path: pathlib.Path, engine: Engine
) -> None:
    write(tmp_path, "a.yaml", document())
    write(tmp_path, "engine.yaml", f"{HEAD}EngineConfig\nlimits: {{maxTtl: 1h11m}}\n")
    said = engine("render", "a.yaml", "--config", "engine.yaml", "--show-origin").stdout
    assert values(said)["spec.ttl"] == '"1h11m"'
    assert origins(said)["spec.ttl"] == "built-in default (startTimeout + timeout + ttlLeeway)"


@pytest.mark.usefixtures("jobs")
def test_a_namespace_may_come_from_the_command_line(engine: Engine) -> None:
    said = engine("render", "jobs", "-n", "dev", "--show-origin")
    assert values(said.stdout)["metadata.namespace"] == '"dev"'
    assert origins(said.stdout)["metadata.namespace"] == "--namespace"


def test_a_namespace_that_the_spec_names_is_its_own(tmp_path: pathlib.Path, engine: Engine) -> None:
    spec = document()
    spec["metadata"]["namespace"] = "ci"
    write(tmp_path, "a.yaml", spec)
    said = engine("render", "a.yaml", "-n", "dev", "--show-origin")
    assert origins(said.stdout)["metadata.namespace"].startswith("a.yaml:")
    assert "dev" not in said.stdout


def test_a_namespace_that_only_the_context_has_is_left_out(
    tmp_path: pathlib.Path, engine: Engine
) -> None:
    write(tmp_path, "a.yaml", document())
    assert "namespace" not in engine("render", "a.yaml", "--show-origin").stdout


def test_origins_are_a_table_for_people(engine: Engine) -> None:
    said = engine("render", "jobs", "--show-origin", "-o", "json")
    assert (said.code, said.stdout) == (2, "")
    assert "--show-origin prints a table" in said.stderr


def test_values_of_secrets_are_masked_wherever_they_come_from(
    tmp_path: pathlib.Path, engine: Engine
) -> None:
    login = {"registry": "r", "username": "u", "password": {"value": VALUE}}
    write(tmp_path, "a.yaml", document(secrets={"A": {"value": VALUE}}))
    above = {"secrets": {"B": {"value": VALUE}}, "registryCredentials": [login]}
    head = {"apiVersion": "jobs.engine/v1alpha1"}
    write(tmp_path, "defaults.yaml", {**head, "kind": "JobDefaults", "spec": above})
    operators = {"secrets": {"C": {"value": VALUE}}}
    write(tmp_path, "o/engine.yaml", {**head, "kind": "EngineConfig", "defaults": operators})
    command = ("render", "a.yaml", "--config", "o/engine.yaml", "--show-origin")
    said = engine(*command)
    assert said.code == 0
    assert said.stdout.count("***") == 4
    assert VALUE not in said.stdout


def test_secrets_neednt_be_there(tmp_path: pathlib.Path, engine: Engine) -> None:
    write(tmp_path, "a.yaml", document(secrets={"A": {"fromEnv": "ENGINE_SECRET_A"}}))
    said = engine("render", "a.yaml", "--show-origin")
    assert values(said.stdout)["spec.secrets.A.fromEnv"] == '"ENGINE_SECRET_A"'


def test_containers_in_lists_have_places_of_their_own(
    tmp_path: pathlib.Path, engine: Engine
) -> None:
    text = "services:\n    - name: redis\n      image: redis:7\n      ports: [1, 2]\n"
    write(tmp_path, "a.yaml", f"{SPEC}  image: a\n  {text}")
    shown = origins(engine("render", "a.yaml", "--show-origin").stdout)
    assert shown["spec.services[0].ports"] == "a.yaml:13:14"
    assert shown["spec.services[0].name"] == "a.yaml:11:13"
