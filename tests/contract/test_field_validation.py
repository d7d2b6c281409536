"""fieldValidation: what a field that doesn't exist leads to, in which words."""

from __future__ import annotations

import pytest

from tests.contract.conftest import Target
from tests.contract.objects import config_map, pod
from tests.support.client import JSON_PATCH, MERGE, STRATEGIC, Obj
from tests.support.misspelt_fields import MISSPELT, Misspelt, laid_over

POD = 'Pod in version "v1" cannot be handled as a Pod: strict decoding error: '


def with_fragment(name: str, misspelt: Misspelt) -> Obj:
    made = laid_over(pod(name), misspelt.fragment)
    assert isinstance(made, dict)
    return made


@pytest.mark.parametrize("misspelt", MISSPELT, ids=lambda misspelt: misspelt.path)
def test_a_misspelt_field_is_refused_when_strict(
    target: Target, name: str, misspelt: Misspelt
) -> None:
    body = with_fragment(name, misspelt)
    got = target.client.post(target.path("pods"), body, fieldValidation="Strict")
    assert (got.code, got.reason) == (400, "BadRequest")
    assert got.message == f'{POD}unknown field "{misspelt.path}"'
    assert target.client.get(target.path("pods", name)).code == 404


def test_all_misspelt_fields_are_told_at_once(target: Target, name: str) -> None:
    body = pod(name, hostNetwrk=True, securityContext={"runAsUsr": 1, "runAsGrp": 1})
    got = target.client.post(target.path("pods"), body, fieldValidation="Strict")
    assert got.code == 400
    told = got.message.removeprefix(POD).split(", ")
    assert sorted(told) == [
        'unknown field "spec.hostNetwrk"',
        'unknown field "spec.securityContext.runAsGrp"',
        'unknown field "spec.securityContext.runAsUsr"',
    ]


@pytest.mark.parametrize("query", [{}, {"fieldValidation": "Warn"}])
def test_a_misspelt_field_is_dropped_with_a_warning_otherwise(
    target: Target, name: str, query: dict[str, str]
) -> None:
    body = pod(name, securityContext={"runAsUsr": 1}, hostNetwrk=True)
    got = target.client.post(target.path("pods"), body, **query)
    assert got.code == 201
    assert "hostNetwrk" not in got.body["spec"]
    assert sorted(got.headers.get_all("Warning", [])) == [
        '299 - "unknown field \\"spec.hostNetwrk\\""',
        '299 - "unknown field \\"spec.securityContext.runAsUsr\\""',
    ]


def test_a_misspelt_field_is_dropped_in_silence_when_ignored(target: Target, name: str) -> None:
    body = {**config_map(name), "extra": 1}
    got = target.client.post(target.path("configmaps"), body, fieldValidation="Ignore")
    assert got.code == 201
    assert "Warning" not in got.headers
    assert "extra" not in got.body


def test_a_replacement_with_a_misspelt_field_is_refused_when_strict(
    target: Target, name: str
) -> None:
    target.client.post(target.path("configmaps"), config_map(name))
    where = target.path("configmaps", name)
    got = target.client.put(where, {**config_map(name), "dat": {}}, fieldValidation="Strict")
    assert (got.code, got.reason) == (400, "BadRequest")
    assert got.message == (
        'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: '
        'unknown field "dat"'
    )


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        (MERGE, {"dat": {}}),
        (STRATEGIC, {"dat": {"a": "b"}}),
        (JSON_PATCH, [{"op": "add", "path": "/dat", "value": {}}]),
    ],
)
def test_a_patch_with_a_misspelt_field_is_refused_when_strict(
    target: Target, name: str, content_type: str, body: object
) -> None:
    target.client.post(target.path("configmaps"), config_map(name))
    where = target.path("configmaps", name)
    got = target.client.patch(where, body, content_type, fieldValidation="Strict")
    assert (got.code, got.reason) == (422, "Invalid")
    assert 'strict decoding error: unknown field "dat"' in got.message


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"priority": "high"}, "PodSpec.spec.priority of type int32"),
        ({"activeDeadlineSeconds": "1h"}, "PodSpec.spec.activeDeadlineSeconds of type int64"),
        ({"hostNetwork": "yes"}, "PodSpec.spec.hostNetwork of type bool"),
        (
            {"containers": [{"name": "main", "image": "a", "ports": [{"containerPort": "80"}]}]},
            "ContainerPort.spec.containers.ports.containerPort of type int32",
        ),
    ],
)
def test_a_mistyped_field_is_refused_whatever_was_asked(
    target: Target, name: str, spec: dict[str, object], words: str
) -> None:
    for asked in ("Strict", "Warn", "Ignore"):
        got = target.client.post(target.path("pods"), pod(name, **spec), fieldValidation=asked)
        assert (got.code, got.reason) == (400, "BadRequest")
        assert got.message == (
            'Pod in version "v1" cannot be handled as a Pod: '
            f"json: cannot unmarshal string into Go struct field {words}"
        )
