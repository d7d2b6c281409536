"""The CustomResourceDefinitions are what the schemas say, as far as a structural schema can."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from deploy.crd import RULES, custom_resource_definitions
from engine.api.schema_docs import explain_field
from tests.deploy.manifests import made_of_schemas

DEFINITIONS = custom_resource_definitions()
NAMES = [one["spec"]["names"]["kind"] for one in DEFINITIONS]
NOT_STRUCTURAL = {"$ref", "allOf", "if", "oneOf", "not", "patternProperties", "uniqueItems"}


def schema_of(definition: dict[str, Any]) -> dict[str, Any]:
    (version,) = definition["spec"]["versions"]
    schema: dict[str, Any] = version["schema"]["openAPIV3Schema"]
    return schema


def nodes(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    yield path, schema
    for name, below in schema.get("properties", {}).items():
        yield from nodes(below, f"{path}.{name}".lstrip("."))
    for name in ("items", "additionalProperties"):
        if name in schema:
            yield from nodes(schema[name], f"{path}[]")


def test_the_plain_yaml_and_the_charts_are_what_the_schemas_make() -> None:
    for path, text in made_of_schemas():
        assert path.read_text(encoding="utf-8") == text, "run make manifests"


@pytest.mark.parametrize("definition", DEFINITIONS, ids=NAMES)
def test_a_definition_is_structural_and_small(definition: dict[str, Any]) -> None:
    assert len(json.dumps(definition)) < 64 * 1024
    for path, node in nodes(schema_of(definition)):
        assert not NOT_STRUCTURAL & node.keys(), path
        is_open = "x-kubernetes-preserve-unknown-fields" in node
        assert "type" in node or is_open or "x-kubernetes-int-or-string" in node, path


@pytest.mark.parametrize("definition", DEFINITIONS, ids=NAMES)
def test_unknown_fields_are_kept_and_no_default_is_written(definition: dict[str, Any]) -> None:
    for path, node in nodes(schema_of(definition)["properties"]["spec"], "spec"):
        assert "default" not in node, path
        if "properties" in node:
            assert node["x-kubernetes-preserve-unknown-fields"] is True, path


def test_every_field_is_described_as_engine_explain_describes_it() -> None:
    spec = schema_of(DEFINITIONS[0])["properties"]["spec"]
    for name, node in spec["properties"].items():
        said = explain_field("JobSpec", ["spec", name])
        default = f"Default: {json.dumps(said.default)}." if said.default is not None else ""
        assert node["description"].startswith(said.description)
        assert node["description"].endswith(default)
        if "type" not in node and said.choices:
            assert f"One of: {', '.join(said.choices)}." in node["description"]


def test_rules_are_bounded_so_that_the_api_server_takes_their_cost() -> None:
    for path, node in nodes(schema_of(DEFINITIONS[0])["properties"]["spec"], "spec"):
        for part in ("items", "additionalProperties"):
            below = [one for _, one in nodes(node[part])] if part in node else []
            if any(RULES in one for one in below):
                assert node.keys() & {"maxItems", "maxProperties"}, path
