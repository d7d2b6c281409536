import base64
import contextlib
import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from ruamel.yaml import YAML

from engine.cli.printers.manifests import print_yaml
from tests.unit.builders import document, write
from tests.unit.cli.conftest import Engine
from tests.unit.strategies import NASTY, json_values

old_yaml: Any = pytest.importorskip("yaml")
SECRET = {"TOKEN": {"fromEnv": "ENGINE_SECRET_TOKEN"}}
VALUE = "hunter2-31337"


def stream(text: str) -> list[dict[str, Any]]:
    return list(YAML(typ="safe").load_all(text))


def test_a_job_is_a_pod_a_secret_and_a_configmap(tmp_path: Path, engine: Engine) -> None:
    write(tmp_path, "a.yaml", document(secrets=SECRET))
    said = engine("render", ".", "-n", "ci")
    assert (said.code, said.stderr) == (0, "")
    made = stream(said.stdout)
    assert [manifest["kind"] for manifest in made] == ["Pod", "Secret", "ConfigMap"]
    assert {manifest["metadata"]["namespace"] for manifest in made} == {"ci"}
    assert made[0]["spec"]["schedulingGates"] == [{"name": "jobs.engine/dependents"}]
    assert made[0]["spec"]["activeDeadlineSeconds"] == 3600
    assert made[0]["metadata"]["annotations"]["jobs.engine/ttl"] == "4500"


def test_yaml_and_json_have_the_same_content(tmp_path: Path, engine: Engine) -> None:
    env = dict(zip((f"A{n}" for n in range(len(NASTY))), NASTY, strict=True))
    clean = {key: value.replace("\0", "") for key, value in env.items()}
    write(tmp_path, "a.yaml", document("a", env=clean, files={"f": "\n".join(NASTY[:20])}))
    write(tmp_path, "b.yaml", document("b"))
    listed = json.loads(engine("render", ".", "-o", "json").stdout)
    assert (listed["apiVersion"], listed["kind"]) == ("v1", "List")
    text = engine("render", ".").stdout
    assert stream(text) == listed["items"]
    assert len(listed["items"]) == 4


def test_kubectls_older_yaml_reads_the_same(tmp_path: Path, engine: Engine) -> None:
    """`yes`, `0777` and `1:30` are no strings in YAML 1.1, which kubectl reads."""
    env = dict(zip((f"A{n}" for n in range(len(NASTY))), NASTY, strict=True))
    clean = {key: value.replace("\0", "") for key, value in env.items()}
    spec = document(env=clean)
    spec["metadata"]["labels"] = {"yes": "no", "on": "off", "n": "0777", "y": "1e3"}
    write(tmp_path, "a.yaml", spec)
    listed = json.loads(engine("render", ".", "-o", "json").stdout)
    assert list(old_yaml.safe_load_all(engine("render", ".").stdout)) == listed["items"]


@given(json_values)
def test_any_manifest_reads_back_as_it_was(value: Any) -> None:
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        print_yaml([{"a": value}, {"b": [value]}])
    assert stream(text.getvalue()) == [{"a": value}, {"b": [value]}]
    assert list(old_yaml.safe_load_all(text.getvalue())) == [{"a": value}, {"b": [value]}]


def test_a_script_is_printed_as_people_wrote_it(tmp_path: Path, engine: Engine) -> None:
    write(tmp_path, "a.yaml", document(script="set -x\nmake test\n"))
    assert "script: |\n    set -x\n    make test\n" in engine("render", ".").stdout


def test_secrets_are_masked_and_neednt_be_there(tmp_path: Path, engine: Engine) -> None:
    login = {"registry": "r", "username": "u", "password": {"value": VALUE}}
    secrets = {**SECRET, "OTHER": {"value": VALUE}}
    write(tmp_path, "a.yaml", document(secrets=secrets, registryCredentials=[login]))
    for output in ("yaml", "json"):
        said = engine("render", ".", "-o", output)
        assert said.code == 0
        assert "***" in said.stdout
        assert VALUE not in said.stdout
        assert base64.b64encode(VALUE.encode()).decode() not in said.stdout


def test_an_invalid_set_renders_nothing(tmp_path: Path, engine: Engine) -> None:
    write(tmp_path, "a.yaml", document("a"))
    write(tmp_path, "b.yaml", document("b", imgae="x"))
    said = engine("render", ".")
    assert (said.code, said.stdout) == (2, "")
    assert 'unknown field "spec.imgae"' in said.stderr


def test_warnings_go_to_stderr(tmp_path: Path, engine: Engine) -> None:
    write(tmp_path, "a.yaml", document(ttl="1m"))
    said = engine("render", ".")
    assert said.code == 0
    assert "warning: spec.ttl" in said.stderr
    assert "warning" not in said.stdout


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ("apiVersion: v1\nkind: Pod\nspec: {{ nope }}\n", "pod.yaml.j2:3:1: 'nope' is undefined"),
        ("{% for %}", "pod.yaml.j2:1:1: "),
        ("apiVersion: v1\nkind: Pod\na: x-{{ job.name }}: b\n", "pod.yaml.j2: the template's out"),
        ("apiVersion: v1\nkind: Service\n", "must make a v1 Pod, not v1 Service"),
        ("apiVersion: v1\nkind: Pod\n", "makes a Pod in which spec is missing"),
        ("apiVersion: v1\nkind: Pod\nspec: {containers: {}}\n", "spec.containers must be a list"),
        ("apiVersion: v1\nkind: Pod\nspec: {containers: [{image: x}]}\n",
         "spec.containers[0].name is missing"),
        ("apiVersion: v1\nkind: Pod\nmetadata: []\nspec: {hostIPC: true, containers: []}\n",
         "metadata must be a mapping"),
        ("apiVersion: v1\nkind: Pod\nspec: {initContainers: , containers: [{name: 1}]}\n",
         "spec.containers[0].name must be a string"),
    ],
)  # fmt: skip
def test_a_broken_template_is_one_line(
    tmp_path: Path, engine: Engine, template: str, words: str
) -> None:
    write(tmp_path, "a.yaml", document())
    write(tmp_path, "t/job/pod.yaml.j2", template)
    said = engine("render", "a.yaml", "--templates", "t")
    assert (said.code, said.stdout) == (2, "")
    (line,) = said.lines
    assert words in line


def test_a_folder_of_templates_must_be_there(tmp_path: Path, engine: Engine) -> None:
    write(tmp_path, "a.yaml", document())
    said = engine("render", "a.yaml", "--templates", "nope")
    assert said.code == 2
    assert "nope" in said.stderr
