"""The schemas keep to what draft-07 and 2020-12 have in common: editors know the first best."""

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator, Draft202012Validator
from referencing import Registry
from referencing.jsonschema import DRAFT7, DRAFT202012
from ruamel.yaml import YAML

from engine.api.kubernetes_schema import bundled_schema
from engine.api.model import Config, Limits
from engine.api.versions import SCHEMAS
from tests.unit.builders import load

ROOT = Path(__file__).parents[3]
DRAFTS: dict[str, Any] = {
    "draft-07": (Draft7Validator, DRAFT7),
    "2020-12": (Draft202012Validator, DRAFT202012),
}
FOLDER = ROOT / "schemas"
EXAMPLES = sorted((ROOT / "examples").rglob("*.yaml"))

DESIGN = """\
# yaml-language-server: $schema=../schemas/job.v1alpha1.schema.json
apiVersion: jobs.engine/v1alpha1
kind: JobSpec
metadata:
  name: build
  namespace: ci
  labels: {team: web}
  annotations: {}
spec:
  image: registry.example/alpine:3.20
  pullPolicy: [Always, IfNotPresent]
  script: |
    make test
  env: {LEVEL: debug}
  files: {config/app.toml: "..."}
  secrets:
    TOKEN: {fromEnv: CI_TOKEN}
    KEY: {fromSecret: {name: ci, key: k}}
  registryCredentials:
    - {registry: registry.example, username: ci, password: {fromEnv: REGISTRY_PASSWORD}}
    - {fromSecret: {name: other-registries}}
  services:
    - {name: redis, image: redis:7, pullPolicy: [Always, IfNotPresent], env: {}, ports: [6379]}
  initContainers: []
  resources: {requests: {cpu: 100m}, limits: {memory: 256Mi}}
  serviceAccountName: builder
  nodeSelector: {}
  tolerations: []
  securityContext: {}
  timeout: 1h
  startTimeout: 10m
  ttl: 3h15m
  ttlAfterFinished: {success: 10m, failure: 24h}
  hold: false
  retry: {max: 0, on: [Evicted, NodeLost]}
  rerun: ""
  template: job
  podPatch: {}
"""


def schema_text(version: str, kind: str) -> str:
    return (FOLDER / SCHEMAS[version, kind]).read_text(encoding="utf-8")


def validators(kind: str) -> list[Any]:
    """A validator of `kind` under each draft."""
    made = []
    for cls, draft in DRAFTS.values():
        registry: Registry[Any] = Registry().with_resources(
            (
                path.relative_to(FOLDER).as_posix(),
                draft.create_resource(json.loads(path.read_bytes())),
            )
            for path in FOLDER.rglob("*.schema.json")
        )
        schema = json.loads(schema_text("jobs.engine/v1alpha1", kind))
        made.append(cls(schema, registry=registry))
    return made


def errors(data: dict[str, Any]) -> list[list[str]]:
    """What each draft says about a document, draft by draft."""
    return [
        sorted(error.json_path for error in validator.iter_errors(data))
        for validator in validators(data["kind"])
    ]


def documents(path: Path) -> list[dict[str, Any]]:
    return [found for found in YAML(typ="safe", pure=True).load_all(path) if found is not None]


@pytest.mark.parametrize("draft", DRAFTS)
@pytest.mark.parametrize(("version", "kind"), SCHEMAS)
def test_every_schema_is_a_schema_under_both_drafts(draft: str, version: str, kind: str) -> None:
    DRAFTS[draft][0].check_schema(json.loads(schema_text(version, kind)))


def test_the_designs_spec_is_valid_under_both_drafts() -> None:
    assert errors(YAML(typ="safe", pure=True).load(DESIGN)) == [[], []]


def test_the_designs_spec_loads_without_a_word() -> None:
    limits = Limits(allowed_secret_env=("CI_TOKEN", "REGISTRY_*"))
    loaded = load(DESIGN, Config(limits=limits), namespace="")
    assert loaded.problems == ()
    (job,) = loaded.jobs
    assert str(job.key) == "ci/build"
    assert (job.timeout, job.start_timeout, job.ttl) == (3600, 600, 11700)
    assert job.policies == {
        "main": ("Always", "IfNotPresent"),
        "redis": ("Always", "IfNotPresent"),
    }


@pytest.mark.parametrize("path", EXAMPLES, ids=[str(p.relative_to(ROOT)) for p in EXAMPLES])
def test_every_example_is_valid_under_both_drafts(path: Path) -> None:
    for found in documents(path):
        if str(found.get("apiVersion")).startswith("jobs.engine/"):
            assert errors(found) == [[], []]


def test_a_bundled_schema_knows_the_fields_of_kubernetes_by_itself() -> None:
    misspelt = {
        "securityContext": {"runAsUsr": 1},
        "podPatch": {"spec": {"containers": [{"name": "main", "$patch": "delete", "imgae": "x"}]}},
    }
    for _, kind in SCHEMAS:
        section = "defaults" if kind == "EngineConfig" else "spec"
        schema = json.loads(bundled_schema(kind))
        for cls, _ in DRAFTS.values():
            found = [error.json_path for error in cls(schema).iter_errors({section: misspelt})]
            assert f"$.{section}.securityContext" in found
            assert f"$.{section}.podPatch.spec.containers[0]" in found


def test_a_bundled_schema_has_what_an_editor_shows_and_completes() -> None:
    """Tried with yaml-language-server 1.25: its hover leaves `default` out, and it completes
    nothing in an empty mapping that may have one field.
    """
    schema = json.loads(bundled_schema("JobSpec"))
    spec, source = (schema["definitions"]["job"][name] for name in ("spec", "secretSource"))
    assert spec["properties"]["timeout"]["description"].endswith(' Default: "1h".')
    assert [*source["properties"]][-1] == "value", "better kept out of the file"
    assert "maxProperties" not in source
    for given, is_valid in (({"fromEnv": "A"}, True), ({"value": "a", "fromEnv": "A"}, False)):
        spec = {"image": "x", "secrets": {"T": given}}
        found = Draft7Validator(schema).iter_errors({"spec": spec})
        assert is_valid is all(error.json_path != "$.spec.secrets.T" for error in found)


@pytest.mark.parametrize(
    "spec",
    [
        {"imgae": "x"},
        {"env": {"A": 1}},
        {"pullPolicy": "always"},
        {"pullPolicy": []},
        {"pullPolicy": ["Nevr"]},
        {"timeout": -1},
        {"timeout": "soon"},
        {"secrets": {"T": {}}},
        {"secrets": {"T": {"value": "a", "fromEnv": "b"}}},
        {"secrets": {"T": {"fromSecret": {"name": "ci"}}}},
        {"secrets": {"T": {"fromSecret": {"name": "../ci", "key": "k"}}}},
        {"registryCredentials": [{"fromSecret": {"name": "ci"}, "registry": "r"}]},
        {"registryCredentials": [{"registry": "r", "username": "u"}]},
        {"files": {"../x": ""}},
        {"files": {"a\n/../b": ""}},
        {"services": [{"name": "Redis", "image": "x"}]},
        {"retry": {"on": ["Sometimes"]}},
    ],
)
def test_both_drafts_refuse_the_same(spec: dict[str, Any]) -> None:
    old, new = errors(
        {
            "apiVersion": "jobs.engine/v1alpha1",
            "kind": "JobSpec",
            "metadata": {"name": "x"},
            "spec": spec,
        }
    )
    assert old == new
    assert old


def test_every_field_of_a_spec_says_what_it_is() -> None:
    schema = json.loads(schema_text("jobs.engine/v1alpha1", "JobSpec"))
    definitions = schema["definitions"]
    for name, field in definitions["spec"]["properties"].items():
        target = definitions[field["$ref"].rpartition("/")[2]] if "$ref" in field else field
        told = field.get("description") or target.get("description")
        assert told or name in ("resources", "env"), name


def test_the_engines_defaults_offer_every_field_of_a_spec() -> None:
    spec = json.loads(schema_text("jobs.engine/v1alpha1", "JobSpec"))["definitions"]["spec"]
    config = json.loads(schema_text("jobs.engine/v1alpha1", "EngineConfig"))
    offered = set(config["properties"]["defaults"]["properties"])
    assert offered == {*spec["properties"], "ttlLeeway"} - {"matrix"}
