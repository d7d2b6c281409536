"""Secrets and ConfigMaps: encodings, sizes, types, and data that can't be changed."""

from __future__ import annotations

import base64
import json

import pytest

from tests.contract.conftest import Target
from tests.contract.objects import config_map
from tests.support.client import MERGE, Obj


def secret(name: str, **more: object) -> Obj:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, **more}


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def test_string_data_is_encoded_into_data(target: Target, name: str) -> None:
    body = secret(name, data={"a": encoded("1"), "b": encoded("1")}, stringData={"b": "2"})
    made = target.client.post(target.path("secrets"), body)
    assert made.body["data"] == {"a": encoded("1"), "b": encoded("2")}
    assert made.body["type"] == "Opaque"
    assert "stringData" not in made.body


def test_data_that_is_no_base64_is_refused(target: Target, name: str) -> None:
    made = target.client.post(target.path("secrets"), secret(name, data={"a": "not base64!"}))
    assert (made.code, made.reason) == (400, "BadRequest")
    assert "illegal base64 data at input byte" in made.message


def test_the_type_of_a_secret_cannot_change(target: Target, name: str) -> None:
    target.client.post(target.path("secrets"), secret(name, type="engine.test/one"))
    got = target.client.patch(target.path("secrets", name), {"type": "engine.test/two"}, MERGE)
    assert got.code == 422
    assert 'type: Invalid value: "engine.test/two": field is immutable' in got.message


def test_a_docker_config_needs_its_key(target: Target, name: str) -> None:
    kind = "kubernetes.io/dockerconfigjson"
    made = target.client.post(target.path("secrets"), secret(name, type=kind))
    assert made.code == 422
    assert "data[.dockerconfigjson]: Required value" in made.message
    bad = secret(name, type=kind, stringData={".dockerconfigjson": "nonsense"})
    assert target.client.post(target.path("secrets"), bad).code == 422
    good = secret(name, type=kind, stringData={".dockerconfigjson": json.dumps({"auths": {}})})
    assert target.client.post(target.path("secrets"), good).code == 201


@pytest.mark.parametrize("resource", ["secrets", "configmaps"])
def test_immutable_data_cannot_change(target: Target, name: str, resource: str) -> None:
    body = {"metadata": {"name": name}, "immutable": True, "data": {"a": encoded("1")}}
    assert target.client.post(target.path(resource), body).code == 201
    where = target.path(resource, name)
    got = target.client.patch(where, {"data": {"a": encoded("2")}}, MERGE)
    assert (got.code, got.reason) == (422, "Invalid")
    assert "data: Forbidden: field is immutable when `immutable` is set" in got.message
    got = target.client.patch(where, {"immutable": False}, MERGE)
    assert "immutable: Forbidden: field is immutable when `immutable` is set" in got.message
    label = {"metadata": {"labels": {"a": "b"}}}
    assert target.client.patch(where, label, MERGE).code == 200


@pytest.mark.parametrize("key", ["a b", "..", "a/b", "x" * 254])
def test_a_bad_key_is_refused(target: Target, name: str, key: str) -> None:
    made = target.client.post(target.path("configmaps"), config_map(name, data={key: "1"}))
    assert (made.code, made.reason) == (422, "Invalid")
    assert f"data[{key}]: Invalid value" in made.message


@pytest.mark.since(1, 36)
def test_a_config_map_over_one_mebibyte_is_refused(target: Target, name: str) -> None:
    made = target.client.post(
        target.path("configmaps"), config_map(name, data={"key": "x" * (1024 * 1024 + 1)})
    )
    assert (made.code, made.reason) == (422, "Invalid")
    assert made.message.endswith("is invalid: []: Too long: may not be more than 1048576 bytes")


@pytest.mark.since(1, 36)
def test_annotations_have_a_limit(target: Target, name: str) -> None:
    big = config_map(name, annotations={"a": "x" * (256 * 1024)})
    made = target.client.post(target.path("configmaps"), big)
    assert made.code == 422
    assert "metadata.annotations: Too long: may not be more than 262144 bytes" in made.message


def test_any_text_comes_back_as_it_was(target: Target, name: str) -> None:
    data = {"a": "ünï\n\t\"'\\ {{ x }} \u2028 🙂", "b": "", "c": "null", "d": "a: b # c"}
    target.client.post(target.path("configmaps"), config_map(name, data=data))
    assert target.client.get(target.path("configmaps", name)).body["data"] == data


def test_nulls_and_empty_maps_are_dropped(target: Target, name: str) -> None:
    body = config_map(name, labels=None, annotations={}, data=None)
    made = target.client.post(target.path("configmaps"), body)
    assert made.code == 201
    assert "data" not in made.body
    assert not {"labels", "annotations"} & set(made.body["metadata"])
