"""Fields of Kubernetes in templates and patches, as validate, render and reconcile tell of them."""

import json
from pathlib import Path

import pytest

from engine.api.kubernetes_schema import CORE, PATCH, TYPES
from engine.files import resource_dir
from tests.unit.builders import document, write
from tests.unit.cli.conftest import Engine

POD = """\
apiVersion: v1
kind: Pod
metadata:
  labels: {a: b}
spec:
  restartPolicy: Never
  containers:
    - name: main
      image: {{ spec.image }}
      securityContext:
        runAsUsr: 1
      env:
        - name: A
          value: 1
"""
FOUND = [
    (
        't/own/pod.yaml.j2:11:9: unknown field "spec.containers[0].securityContext.runAsUsr"'
        " (did you mean runAsUser?)"
    ),
    (
        "t/own/pod.yaml.j2:14:11: spec.containers[0].env[0].value must be a string, "
        "not the number 1 (quote it)"
    ),
]


@pytest.fixture
def own_templates(tmp_path: Path) -> None:
    write(tmp_path, "t/own/pod.yaml.j2", POD)
    write(tmp_path, "t/own/secret.yaml.j2", "apiVersion: v1\nkind: Secret\n")
    write(tmp_path, "t/own/configmap.yaml.j2", "apiVersion: v1\nkind: ConfigMap\n")


@pytest.mark.usefixtures("own_templates")
def test_the_output_of_a_template_is_checked_once_for_all_jobs(
    tmp_path: Path, engine: Engine
) -> None:
    for name in ("a", "b"):
        write(tmp_path, f"{name}.yaml", document(name, template="own"))
    said = engine("validate", ".", "--templates", "t")
    assert said.code == 2
    assert said.stdout.splitlines() == FOUND


@pytest.mark.usefixtures("own_templates")
def test_a_field_that_a_template_writes_twice_is_told_for_the_file(
    tmp_path: Path, engine: Engine
) -> None:
    twice = POD.replace("      env:\n", "        # here, or below\n      env:\n")
    twice = twice.replace("    - name: main\n", "    - name: main\n      runAsUsr: 1\n")
    write(tmp_path, "t/own/pod.yaml.j2", twice.replace("value: 1", "value: {{ 'x' }}"))
    write(tmp_path, "a.yaml", document("a", template="own"))
    assert engine("validate", "a.yaml", "--templates", "t").stdout.splitlines() == [
        (
            't/own/pod.yaml.j2: unknown field "spec.containers[0].runAsUsr"'
            " (nearest: readinessProbe, livenessProbe, resources;"
            " engine explain spec.podPatch.spec.containers lists all)"
        ),
        (
            't/own/pod.yaml.j2: unknown field "spec.containers[0].securityContext.runAsUsr"'
            " (did you mean runAsUser?)"
        ),
    ]


def test_the_fields_of_a_newer_cluster_are_those_of_its_own_types(
    tmp_path: Path, engine: Engine
) -> None:
    files = {}
    for name in (TYPES, PATCH):
        files[name] = json.loads((resource_dir("schemas") / name).read_bytes())
        fields = files[name]["definitions"][f"{CORE}.PodSpec"]["properties"]
        fields["newField"] = {"type": ["string", "null"], "enum": ["Fast", "Slow", None]}
    write(tmp_path, "types.json", json.dumps(files))
    write(tmp_path, "a.yaml", document("a", podPatch={"spec": {"newField": "Fast"}}))
    assert engine("validate", "a.yaml").code == 2
    assert engine("validate", "a.yaml", "--kubernetes-schema", "types.json").code == 0
    rendered = engine("render", "a.yaml", env={"ENGINE_KUBERNETES_SCHEMA": "types.json"})
    assert rendered.code == 0
    assert "newField: Fast" in rendered.stdout
    write(tmp_path, "a.yaml", document("a", podPatch={"spec": {"newField": "Fats"}}))
    said = engine("validate", "a.yaml", "--kubernetes-schema", "types.json")
    assert said.code == 2
    assert 'newField: "Fats" is not allowed (did you mean Fast?)' in said.stdout


def test_a_file_without_types_is_said(tmp_path: Path, engine: Engine) -> None:
    write(tmp_path, "a.yaml", document("a"))
    write(tmp_path, "types.json", '{"openapi": "3.0.0"}')
    said = engine("validate", "a.yaml", "--kubernetes-schema", "types.json")
    assert (said.code, said.lines) == (
        2,
        [
            (
                "types.json: this file has no types of Kubernetes"
                " (the repository's kubernetes_types.py makes it of: kubectl get --raw /openapi/v2)"
            )
        ],
    )
