"""Kubernetes' types as JSON Schemas: made from OpenAPI, for whole objects and for patches."""

import json
from pathlib import Path
from typing import Any

import pytest

from deploy.kubernetes_types import for_patches, from_openapi, main
from engine.api.kubernetes_schema import CORE, PATCH, SHIPPED, TYPES, read_kubernetes_schema
from engine.api.versions import read_schema
from engine.errors import InvalidInputError
from engine.files import resource_dir

QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"


def openapi(**pod_fields: Any) -> dict[str, Any]:
    """The least that is an OpenAPI v2 document of Kubernetes."""
    gvk = [{"group": "", "version": "v1", "kind": "Pod"}]
    empty: dict[str, Any] = {"type": "object", "properties": {}}
    return {
        "swagger": "2.0",
        "definitions": {
            f"{CORE}.Pod": {
                "type": "object",
                "properties": pod_fields,
                "x-kubernetes-group-version-kind": gvk,
            },
            f"{CORE}.Secret": empty,
            f"{CORE}.ConfigMap": empty,
            f"{CORE}.PodSecurityContext": empty,
            f"{CORE}.SecurityContext": empty,
            f"{CORE}.Toleration": empty,
            f"{CORE}.Item": {"type": "object", "properties": {"name": {"type": "string"}}},
            QUANTITY: {"type": "string"},
        },
    }


def array(**more: Any) -> dict[str, Any]:
    items = {"$ref": f"#/definitions/{CORE}.Item"}
    return {"type": "array", "items": items, **{f"x-kubernetes-{k}": v for k, v in more.items()}}


def fields(**pod_fields: Any) -> dict[str, Any]:
    """What becomes of the fields of a pod."""
    made: dict[str, Any] = from_openapi(openapi(**pod_fields))["definitions"][f"{CORE}.Pod"]
    found: dict[str, Any] = made["properties"]
    return found


@pytest.mark.parametrize(
    ("schema", "made"),
    [
        ({"type": "string"}, {"type": ["string", "null"]}),
        ({"type": "string", "enum": ["A"]}, {"type": ["string", "null"], "enum": ["A", None]}),
        ({"type": "integer", "format": "int64"}, {"type": ["integer", "null"], "format": "int64"}),
        (
            {"type": "integer", "format": "int32"},
            {
                "type": ["integer", "null"],
                "format": "int32",
                "minimum": -(2**31),
                "maximum": 2**31 - 1,
            },
        ),
        ({"type": "number", "format": "double"}, {"type": ["number", "null"]}),
        ({"type": "object", "description": "Long. Story."}, {"type": ["object", "null"]}),
        ({"$ref": f"#/definitions/{QUANTITY}"}, {"$ref": f"#/definitions/{QUANTITY}"}),
        (
            {"type": "object", "additionalProperties": {"type": "string"}},
            {"type": ["object", "null"], "additionalProperties": {"type": ["string", "null"]}},
        ),
    ],
)
def test_a_field_is_what_its_openapi_says_or_null(
    schema: dict[str, Any], made: dict[str, Any]
) -> None:
    assert fields(field=schema) == {"field": made}


def test_an_item_of_a_list_is_never_null() -> None:
    merged = {"patch-merge-key": "name", "patch-strategy": "merge", "list-type": "map"}
    item = {"$ref": f"#/definitions/{CORE}.Item"}
    assert fields(field=array(**merged)) == {
        "field": {
            "type": ["array", "null"],
            **{f"x-kubernetes-{key}": value for key, value in merged.items()},
            "items": {"type": "object", "allOf": [item]},
        }
    }


def test_the_first_sentence_of_a_description_is_kept_for_types_that_are_explained() -> None:
    document = openapi(a={"type": "string", "description": "One. Two."})
    made = from_openapi(document, explained=[f"{CORE}.Pod"])["definitions"]
    assert made[f"{CORE}.Pod"]["properties"]["a"]["description"] == "One."


def test_a_patch_needs_no_field_and_has_directives() -> None:
    document = openapi(a={"type": "string"}, items=array())
    document["definitions"][f"{CORE}.Pod"]["required"] = ["a"]
    types = from_openapi(document)
    whole, patch = (one["definitions"][f"{CORE}.Pod"] for one in (types, for_patches(types)))
    assert whole["required"] == ["a"]
    assert "required" not in patch
    assert patch["properties"] == whole["properties"]
    assert [*patch["patternProperties"]] == [
        r"^\$patch$",
        r"^\$retainKeys$",
        r"^\$(setElementOrder|deleteFromPrimitiveList)/(items)$",
    ]


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ([], "this is no OpenAPI v2 document"),
        ({"openapi": "3.0.0", "paths": {}}, "this is no OpenAPI v2 document"),
        ({"definitions": {}}, f"it has no '{CORE}"),
        (openapi(a={"$ref": "#/definitions/Nothing"}), "this is no OpenAPI v2 document"),
        (openapi(a={"type": "text"}), "this is no OpenAPI v2 document"),
        (openapi(a=[]), "this is no OpenAPI v2 document"),
    ],
)
def test_another_document_is_refused(document: Any, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        from_openapi(document)


def test_the_script_prints_what_the_engine_reads(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "openapi.json").write_text(json.dumps(openapi(a={"type": "string"})))
    main(str(tmp_path / "openapi.json"))
    (tmp_path / "types.json").write_text(capsys.readouterr().out)
    read = read_kubernetes_schema(tmp_path / "types.json")
    assert read.kind("v1", "Pod")["properties"] == {"a": {"type": ["string", "null"]}}


@pytest.mark.parametrize("content", ["{", "{}"])
def test_the_script_says_which_file_is_no_openapi(tmp_path: Path, content: str) -> None:
    (tmp_path / "openapi.json").write_text(content)
    with pytest.raises(SystemExit, match=r"openapi\.json: .+"):
        main(str(tmp_path / "openapi.json"))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "can't be read"),
        ("{", "this file has no types of Kubernetes"),
        ("[]", "this file has no types of Kubernetes"),
        (json.dumps(openapi()), "this file has no types of Kubernetes"),
    ],
)
def test_a_file_that_is_no_schema_is_told_with_what_makes_one(
    tmp_path: Path, content: str | None, words: str
) -> None:
    path = tmp_path / "types.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(InvalidInputError) as caught:
        read_kubernetes_schema(path)
    assert f"{path}: {words}" in str(caught.value)
    assert "kubectl get --raw /openapi/v2" in str(caught.value)


def test_the_shipped_types_are_of_the_release_that_tests_run_on() -> None:
    release = read_schema(TYPES)["$comment"].split()[3].rstrip(",")
    modules = Path(__file__).parents[2] / "cluster/modules/kubernetes-1.36/go.mod"
    assert f"k8s.io/kubernetes {release} " in modules.read_text(encoding="utf-8")


def test_the_shipped_patch_is_what_is_made_of_the_shipped_types() -> None:
    types, patch = (
        json.loads((resource_dir("schemas") / one).read_text()) for one in (TYPES, PATCH)
    )
    assert for_patches(types)["definitions"] == patch["definitions"]


def test_nothing_in_a_pod_is_without_a_type() -> None:
    """What isn't defined by Kubernetes at all is the one exception: who owns which field."""
    loose = [
        name
        for name, kind in SHIPPED.definitions["patch"].items()
        if kind["type"] == ["object", "null"] and "properties" not in kind
    ]
    assert loose == ["io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1"]
