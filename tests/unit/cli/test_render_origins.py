"""`engine render --show-origin`: what holds for a job, and which file says so."""

import contextlib
import io
import pathlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.api.origins import EffectiveDocument, Origin
from engine.api.yaml_reader import Path
from engine.cli.printers.manifests import to_yaml
from engine.cli.printers.origins import print_origins
from engine.errors import SourceLocation
from tests.support.engine import CommandResult
from tests.unit.builders import document, write
from tests.unit.cli.conftest import Engine
from tests.unit.cli.test_render import old_yaml, stream
from tests.unit.strategies import any_text, process_text

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
    """What stands behind the values, by the last key of each."""
    lines = (line.split("  # ") for line in text.splitlines() if "  # " in line)
    return {value.strip().split(":")[0]: comment for value, comment in lines}


@pytest.mark.usefixtures("jobs")
def test_every_value_has_the_place_where_it_was_written(engine: Engine) -> None:
    said = engine("render", "jobs", "--config", "engine.yaml", "--show-origin")
    assert (said.code, said.stderr) == (0, "")
    assert origins(said.stdout) == {
        "name": "jobs/ci/build.yaml:3:18",
        "namespace": "jobs/defaults.yaml:4:14 (JobDefaults)",
        "team": "jobs/defaults.yaml:5:18 (JobDefaults)",
        "script": "jobs/ci/build.yaml:5:11",
        "LEVEL": "jobs/ci/build.yaml:8:16",
        "LANG": "jobs/defaults.yaml:9:28 (JobDefaults)",
        "image": "jobs/defaults.yaml:7:10 (JobDefaults)",
        "timeout": "jobs/defaults.yaml:8:12 (JobDefaults)",
        "pullPolicy": "jobs/defaults.yaml:10:15 (JobDefaults)",
        "startTimeout": "engine.yaml:4:17 (EngineConfig)",
        "max": "engine.yaml:6:16 (EngineConfig)",
        "ttl": "built-in default (startTimeout + timeout + ttlLeeway)",
        "template": "built-in default",
        "onChange": "built-in default",
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
    (spec,) = stream(said.stdout)
    assert (spec["spec"]["timeout"], spec["spec"]["ttl"]) == ("1h", "1h6m")
    assert spec["spec"]["pullPolicy"] == ["IfNotPresent"]
    shown = origins(said.stdout)
    assert shown["timeout"] == "engine.yaml:8:15 (limits.maxTimeout)"
    assert shown["pullPolicy"] == "engine.yaml:10:24 (limits.allowedPullPolicies)"


def test_a_default_ttl_is_shown_as_the_limit_cuts_it(
    tmp_path: pathlib.Path, engine: Engine
) -> None:
    write(tmp_path, "a.yaml", document())
    write(tmp_path, "engine.yaml", f"{HEAD}EngineConfig\nlimits: {{maxTtl: 1h11m}}\n")
    said = engine("render", "a.yaml", "--config", "engine.yaml", "--show-origin").stdout
    assert 'ttl: "1h11m"  # built-in default (startTimeout + timeout + ttlLeeway)' in said


@pytest.mark.usefixtures("jobs")
def test_a_namespace_may_come_from_the_command_line(engine: Engine) -> None:
    said = engine("render", "jobs", "-n", "dev", "--show-origin")
    assert stream(said.stdout)[0]["metadata"]["namespace"] == "dev"
    assert origins(said.stdout)["namespace"] == "--namespace"


def test_a_namespace_that_the_spec_names_is_its_own(tmp_path: pathlib.Path, engine: Engine) -> None:
    spec = document()
    spec["metadata"]["namespace"] = "ci"
    write(tmp_path, "a.yaml", spec)
    said = engine("render", "a.yaml", "-n", "dev", "--show-origin")
    assert origins(said.stdout)["namespace"].startswith("a.yaml:")
    assert "dev" not in said.stdout


def test_a_namespace_that_only_the_context_has_is_left_out(
    tmp_path: pathlib.Path, engine: Engine
) -> None:
    write(tmp_path, "a.yaml", document())
    assert "namespace" not in engine("render", "a.yaml", "--show-origin").stdout


def test_origins_are_comments_which_json_does_not_have(engine: Engine) -> None:
    said = engine("render", "jobs", "--show-origin", "-o", "json")
    assert (said.code, said.stdout) == (2, "")
    assert "--show-origin prints YAML" in said.stderr


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
    assert engine(*command, "--show-secrets").stdout.count(VALUE) == 4


def test_secrets_neednt_be_there(tmp_path: pathlib.Path, engine: Engine) -> None:
    write(tmp_path, "a.yaml", document(secrets={"A": {"fromEnv": "ENGINE_SECRET_A"}}))
    said = engine("render", "a.yaml", "--show-origin", "--show-secrets")
    assert "fromEnv: ENGINE_SECRET_A  # a.yaml:" in said.stdout


def test_containers_in_lists_have_places_of_their_own(
    tmp_path: pathlib.Path, engine: Engine
) -> None:
    text = "services:\n    - name: redis\n      image: redis:7\n      ports: [1, 2]\n"
    write(tmp_path, "a.yaml", f"{SPEC}  image: a\n  {text}")
    shown = origins(engine("render", "a.yaml", "--show-origin").stdout)
    assert shown["ports"] == "a.yaml:13:14"
    assert shown["- name"] == "a.yaml:11:13"


@pytest.mark.usefixtures("jobs")
def test_what_is_printed_is_a_spec_that_means_the_same_without_defaults(
    tmp_path: pathlib.Path, engine: Engine
) -> None:
    said = show_limited(tmp_path, engine)
    write(tmp_path, "whole.yaml", said.stdout)
    before, after = (
        stream(engine("render", *arguments).stdout)[0]
        for arguments in (("jobs", "--config", "engine.yaml"), ("whole.yaml",))
    )
    for pod in (before, after):
        del pod["metadata"]["name"], pod["metadata"]["labels"]["jobs.engine/run"]
        del pod["spec"]["volumes"]
    assert after == before


@given(st.dictionaries(process_text, process_text, min_size=1, max_size=5), any_text)
def test_comments_change_nothing_of_what_reads_back(values: dict[str, str], file: str) -> None:
    data = {"spec": {"env": values, "services": [{"env": values, "command": [*values]}]}}
    below: list[Path] = [("spec", "env"), ("spec", "services", 0, "env")]
    paths: list[Path] = [(*path, key) for path in below for key in values]
    origin = Origin("JobSpec", SourceLocation(file, 1, 2))
    shown = EffectiveDocument(data, dict.fromkeys(paths, origin))
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        print_origins([shown])
    assert stream(text.getvalue()) == [data]
    assert list(old_yaml.safe_load_all(text.getvalue())) == [data]
    assert len(text.getvalue().splitlines()) == len(to_yaml([data]).splitlines())
