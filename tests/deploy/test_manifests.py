"""The plain YAML of deploy/: what the chart makes, and whole without it."""

import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.cluster.helm import Helm
from tests.deploy.kubernetes_types import faults_of
from tests.deploy.manifests import DEPLOY, MANIFESTS, Manifest
from tests.deploy.restricted import require_restricted
from tests.support.engine import COMMAND

EACH = pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda manifest: manifest.name)


def documents(*paths: Path) -> list[dict[str, Any]]:
    return [one for path in paths for one in YAML(typ="safe", pure=True).load_all(path.read_text())]


def of_kind(kind: str, among: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return [document for document in among if document["kind"] == kind]


@EACH
def test_it_is_what_the_chart_makes(helm: Helm, manifest: Manifest) -> None:
    assert manifest.path.read_text() == manifest.made(helm), "run make manifests"


@EACH
def test_it_is_what_kubernetes_knows_and_names_no_helm(manifest: Manifest) -> None:
    for document in documents(manifest.path):
        assert faults_of(document) == []
    lines = [line.partition("#")[0] for line in manifest.path.read_text().splitlines()]
    assert not [line for line in lines if "helm" in line.lower()]


def test_the_kustomization_holds_all_of_it_once() -> None:
    (kustomization,) = documents(DEPLOY / "kustomization.yaml")
    assert {DEPLOY / name for name in kustomization["resources"]} == {m.path for m in MANIFESTS}
    everything = documents(*(manifest.path for manifest in MANIFESTS))
    places = [
        (d["kind"], d["metadata"].get("namespace"), d["metadata"]["name"]) for d in everything
    ]
    assert len(places) == len(set(places))
    made = {namespace["metadata"]["name"] for namespace in of_kind("Namespace", everything)}
    assert {place for _, place, _ in places if place} <= made


def test_the_jobs_of_the_example_are_admitted_where_they_run(tmp_path: Path) -> None:
    found = documents(DEPLOY / "engine.yaml")
    (namespace,) = [n for n in of_kind("Namespace", found) if n["metadata"]["name"] == "ci"]
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    for config_map in of_kind("ConfigMap", found):
        for name, text in config_map["data"].items():
            (tmp_path / name).write_text(text)
    (tmp_path / "engine.yaml").rename(tmp_path / "config")
    done = subprocess.run(
        [*COMMAND, "render", "-n", "ci", "--config", str(tmp_path / "config"), str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
    )
    pods = of_kind("Pod", YAML(typ="safe", pure=True).load_all(done.stdout))
    assert [pod["metadata"]["namespace"] for pod in pods] == ["ci"]
    require_restricted(pods[0]["spec"])
