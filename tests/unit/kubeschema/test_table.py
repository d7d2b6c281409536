"""The table of Kubernetes' types: made from OpenAPI, written as text, read as objects."""

from pathlib import Path
from typing import Any

import pytest

from engine.errors import InvalidInputError
from engine.kubeschema import TABLE, read_types, shipped_types
from engine.kubeschema.model import ListOf, MapOf, Scalar, Struct, Type
from engine.kubeschema.openapi import OpenAPIError, table_from_openapi
from engine.kubeschema.table import read_table
from engine.package_data import resource_dir

CORE = "io.k8s.api.core.v1"


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
            f"{CORE}.Item": {"type": "object", "properties": {"name": {"type": "string"}}},
            "io.k8s.apimachinery.pkg.api.resource.Quantity": {"type": "string"},
        },
    }


def array(**more: Any) -> dict[str, Any]:
    items = {"$ref": f"#/definitions/{CORE}.Item"}
    return {"type": "array", "items": items, **{f"x-kubernetes-{k}": v for k, v in more.items()}}


def field_of(schema: dict[str, Any]) -> Type:
    table = read_table(table_from_openapi(openapi(field=schema)))
    return table.kind("v1", "Pod").fields["field"]


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        ({"type": "string"}, Scalar("str")),
        ({"type": "string", "enum": ["", "A", "B"]}, Scalar("str", choices=("", "A", "B"))),
        ({"type": "string", "format": "byte"}, Scalar("bytes")),
        ({"type": "integer", "format": "int32"}, Scalar("int32")),
        ({"type": "integer", "format": "int64"}, Scalar("int64")),
        ({"type": "number"}, Scalar("float")),
        ({"type": "boolean"}, Scalar("bool")),
        ({"type": "object"}, Scalar("any")),
        (
            {"$ref": "#/definitions/io.k8s.apimachinery.pkg.api.resource.Quantity"},
            Scalar("qty"),
        ),
        (
            {"type": "object", "additionalProperties": {"type": "string"}},
            MapOf(Scalar("str")),
        ),
        (
            {
                "type": "object",
                "additionalProperties": {"type": "string"},
                "x-kubernetes-map-type": "atomic",
            },
            MapOf(Scalar("str"), atomic=True),
        ),
    ],
)
def test_a_type_is_what_its_openapi_says(schema: dict[str, Any], kind: Type) -> None:
    assert field_of(schema) == kind


@pytest.mark.parametrize(
    ("extensions", "keys", "is_set", "merge_key", "merges"),
    [
        ({}, (), False, "", False),
        ({"list-type": "atomic"}, (), False, "", False),
        (
            {
                "list-type": "map",
                "list-map-keys": ["protocol", "port"],
                "patch-merge-key": "port",
                "patch-strategy": "merge",
            },
            ("port", "protocol"), False, "port", False,
        ),
        ({"list-type": "map", "list-map-keys": ["name"]}, ("name",), False, "", False),
        (
            {"list-type": "atomic", "patch-merge-key": "ip", "patch-strategy": "merge"},
            (), False, "ip", False,
        ),
        (
            {"list-type": "map", "list-map-keys": ["name"], "patch-merge-key": "name",
             "patch-strategy": "merge,retainKeys"},
            ("name",), False, "name", False,
        ),
        ({"list-type": "set", "patch-strategy": "merge"}, (), True, "", True),
        ({"list-type": "set"}, (), True, "", False),
    ],
)  # fmt: skip
def test_a_list_is_applied_and_patched_as_its_openapi_says(
    extensions: dict[str, Any], keys: tuple[str, ...], is_set: bool, merge_key: str, merges: bool
) -> None:
    kind = field_of(array(**extensions))
    assert isinstance(kind, ListOf)
    assert isinstance(kind.item, Struct)
    assert (kind.keys, kind.is_set, kind.merge_key, kind.merges) == (
        keys,
        is_set,
        merge_key,
        merges,
    )


def test_required_fields_and_pointers_keep_their_zero() -> None:
    document = openapi(a={"type": "string"}, b={"type": "string"}, c={"type": "string"})
    document["definitions"][f"{CORE}.Pod"]["required"] = ["a"]
    fields = read_table(table_from_openapi(document, {("Pod", "b")})).kind("v1", "Pod").fields
    kept = [name for name, kind in fields.items() if isinstance(kind, Scalar) and kind.keeps_zero]
    assert kept == ["a", "b"]


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ([], "this is no OpenAPI v2 document"),
        ({"openapi": "3.0.0", "paths": {}}, "this is no OpenAPI v2 document"),
        ({"definitions": {}}, f"it has no {CORE}.Pod"),
        (openapi(a=array(**{"list-type": "map"})), "can't be understood"),
        (openapi(a={"type": "array"}), "can't be understood"),
    ],
)
def test_another_document_is_refused(document: Any, words: str) -> None:
    with pytest.raises(OpenAPIError, match=words):
        table_from_openapi(document)


@pytest.mark.parametrize(
    ("content", "words"),
    [(None, "can't be read"), ("{", "this is no JSON"), ("{}", "this is no OpenAPI v2")],
)
def test_a_file_that_is_no_schema_is_told_with_what_makes_one(
    tmp_path: Path, content: str | None, words: str
) -> None:
    path = tmp_path / "swagger.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(InvalidInputError) as caught:
        read_types(path)
    assert f"{path}: {words}" in str(caught.value)
    assert "kubectl get --raw /openapi/v2" in str(caught.value)


def test_the_same_name_means_another_type_in_another_package() -> None:
    table = shipped_types()
    core, new = table.kind("v1", "Event"), table.kind("events.k8s.io/v1", "Event")
    assert "involvedObject" in core.fields
    assert "regarding" in new.fields
    assert core.fields["series"] is not new.fields["series"]


def test_nothing_in_the_table_is_without_a_type() -> None:
    """What isn't defined by Kubernetes at all is the one exception: who owns which field."""
    loose = [
        f"{struct.name}.{name}"
        for struct in shipped_types().structs()
        for name, kind in struct.fields.items()
        if kind == Scalar("any")
    ]
    assert loose == ["ManagedFieldsEntry.fieldsV1"]


SHIPPED = (resource_dir("schemas") / TABLE).read_text(encoding="utf-8")
RELEASE = SHIPPED.split()[4].rstrip(",")


def test_the_shipped_table_is_of_the_release_that_tests_run_on() -> None:
    modules = Path(__file__).parents[2] / "cluster/modules/kubernetes-1.36/go.mod"
    assert f"k8s.io/kubernetes {RELEASE} " in modules.read_text(encoding="utf-8")
