"""What is said of fields is what the schemas and the engine hold."""

import json
from typing import Any

import pytest

from engine.api.effective import BUILT_IN
from engine.api.model import Config
from engine.api.schema_docs import KINDS, FieldDoc, explain_field
from engine.durations import parse_duration
from engine.errors import UsageError
from tests.unit.builders import make_config, make_job


def explained(path: str, kind: str = "JobSpec") -> FieldDoc:
    return explain_field(kind, path.split(".") if path else [])


def every_field(kind: str) -> list[list[str]]:
    """Paths of all fields that the schema itself names."""
    found = []
    left: list[list[str]] = [[]]
    while left:
        path = left.pop()
        field = explain_field(kind, path)
        found.append(path)
        if not field.of_kubernetes:
            left += [[*path, below.name] for below in field.fields]
    return found


@pytest.mark.parametrize(
    ("path", "type_"),
    [
        ("spec.pullPolicy", "string or list of strings"),
        ("spec.timeout", "string or integer"),
        ("spec.env", "mapping of strings"),
        ("spec.resources.limits", "mapping of strings or numbers"),
        ("spec.env.ANY_NAME", "string"),
        ("spec.services", "list of mappings"),
        ("spec.services.image", "string"),
        ("spec.secrets.TOKEN.fromEnv", "string"),
        ("spec.tolerations.operator", "string"),
        ("spec.securityContext.runAsUser", "integer"),
        ("spec.initContainers.securityContext.capabilities.add", "list of strings"),
        ("spec.podPatch.spec.hostAliases", "list of mappings"),
        ("spec.podPatch.spec.initContainers.image", "string"),
        ("spec.automountServiceAccountToken", "boolean"),
    ],
)
def test_a_field_is_found_through_lists_mappings_and_kubernetes_own(path: str, type_: str) -> None:
    assert explained(path).type == type_


def test_a_field_says_its_choices_default_and_what_it_must_have() -> None:
    assert explained("spec.pullPolicy").choices == ("Always", "IfNotPresent", "Never")
    assert explained("spec.onChange").default == "Replace"
    assert explained("spec.services.name").required
    assert not explained("spec.services.env").required
    assert explained("spec.securityContext").of_kubernetes
    assert explained("spec.tolerations").of_kubernetes
    assert not explained("spec.resources").of_kubernetes


@pytest.mark.parametrize(
    ("path", "unknown", "hint"),
    [
        ("spec.pullPolicies", "spec.pullPolicies", "did you mean pullPolicy?"),
        ("spce.image", "spce", "did you mean spec?"),
        ("spec.services.imgae", "spec.services.imgae", "did you mean image?"),
        ("spec.securityContext.runAsUsr", "spec.securityContext.runAsUsr", "mean runAsUser?"),
        ("spec.image.tag", "spec.image.tag", "it has no fields"),
    ],
)
def test_an_unknown_field_is_told_with_what_was_meant(path: str, unknown: str, hint: str) -> None:
    with pytest.raises(UsageError) as error:
        explained(path)
    assert f'unknown field "{unknown}"' in str(error.value)
    assert hint in error.value.hint


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_can_be_explained(kind: str) -> None:
    assert len(every_field(kind)) > 30
    for path in every_field(kind):
        assert explain_field(kind, path).type


def test_the_defaults_that_are_told_are_those_that_hold() -> None:
    for name, value in BUILT_IN.items():
        assert explained(f"defaults.{name}", "EngineConfig").default == value
    told = {
        ".".join(path): explain_field("JobSpec", path).default for path in every_field("JobSpec")
    }
    others = {path.removeprefix("spec."): told[path] for path in told if told[path] is not None}
    assert frozenset(others.pop("retry.on")) == make_job().retry.on
    assert others == {
        **{name: value for name, value in BUILT_IN.items() if name != "ttlLeeway"},
        "retry.max": make_job().retry.max,
        "dependsOn.on": "succeeded",
        "disruption": "allow",
        "services.ready.http.path": "/",
    }


def test_the_operators_defaults_that_are_told_are_those_that_hold() -> None:
    told: dict[str, dict[str, Any]] = {}
    for section, name in (path for path in every_field("EngineConfig") if len(path) == 2):
        default = explain_field("EngineConfig", [section, name]).default
        if section != "defaults" and default is not None:
            told.setdefault(section, {})[name] = default
    assert set(told) == {"limits", "features", "pull", "records"}
    assert parse_duration(told["pull"]["patience"]) == Config().pull.patience
    text = "".join(f"{section}: {json.dumps(fields)}\n" for section, fields in told.items())
    assert make_config(text) == Config()
