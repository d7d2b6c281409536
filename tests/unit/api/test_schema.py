"""The validator in use refuses what the reference implementation of JSON Schema refuses."""

import copy
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from jsonschema import ValidationError
from jsonschema.validators import extend

from engine.api.schema import is_valid, violations
from engine.api.schema_messages import Violation, count, explain
from engine.api.versions import API_VERSION, ENGINE_CONFIG, JOB_DEFAULTS
from engine.api.yaml_reader import read_yaml
from engine.render.yaml_value import to_yaml_value
from tests.unit.api.test_schemas import DESIGN, EXAMPLES, validators
from tests.unit.strategies import json_values

WHOLE: dict[str, Any] = read_yaml(DESIGN.encode(), "design.yaml").documents[0].data
CONFIG = {
    "apiVersion": API_VERSION,
    "kind": ENGINE_CONFIG,
    "defaults": {"timeout": "1h", "env": {"A": "b"}, "retry": {"max": 1, "on": ["Evicted"]}},
    "limits": {"maxTimeout": 10, "allowedPullPolicies": ["Always", "Never"]},
    "features": {"events": False},
}
DEFAULTS = {"apiVersion": API_VERSION, "kind": JOB_DEFAULTS, "spec": WHOLE["spec"]}
SOME = st.sampled_from(
    ["", "a", "A b", "1h", "Always", "Evicted", "x" * 300, 0, 1, -1, 1.0, 0.5, 2**62, True, False]
)


def reference_validator(kind: str) -> Any:
    """One to which `$` is the end of a text, as to JSON Schema: to Python it also stands before a
    last line break.
    """

    def matches_whole(
        validator: Any, pattern: str, instance: Any, _schema: Any
    ) -> Iterator[ValidationError]:
        if validator.is_type(instance, "string") and not re.fullmatch(pattern, instance):
            yield ValidationError("does not match")

    validator = validators(kind)[-1]
    return extend(type(validator), {"pattern": matches_whole})(  # type: ignore[no-untyped-call]
        validator.schema, registry=validator._registry
    )


def fits(data: dict[str, Any]) -> bool:
    return is_valid(data, data["apiVersion"], data["kind"])


def refused(found: list[Violation]) -> set[tuple[Any, ...]]:
    return {(*each.path, each.in_names, each.keyword) for each in found}


def reference_refused(data: dict[str, Any]) -> set[tuple[Any, ...]]:
    return {
        (*error.absolute_path, "propertyNames" in error.absolute_schema_path, error.validator)
        for error in reference_validator(data["kind"]).iter_errors(data)
    }


def places(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Path of every value."""
    found = [path] if path else []
    if isinstance(data, dict | list):
        for key, value in data.items() if isinstance(data, dict) else enumerate(data):
            found += places(value, (*path, key))
    return found


@pytest.mark.parametrize("data", [WHOLE, CONFIG, DEFAULTS], ids=lambda data: data["kind"])
def test_what_is_valid_is_valid_to_both(data: dict[str, Any]) -> None:
    assert reference_validator(data["kind"]).is_valid(data)
    assert fits(data)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_so_is_every_example(path: Path) -> None:
    for document in read_yaml(path.read_bytes(), str(path)).documents:
        assert fits(document.data)


@pytest.mark.parametrize("data", [WHOLE, CONFIG, DEFAULTS], ids=lambda data: data["kind"])
@given(st.data())
def test_both_refuse_the_same_and_every_refusal_is_explained(
    data: dict[str, Any], drawn: st.DataObject
) -> None:
    changed = copy.deepcopy(data)
    for _ in range(drawn.draw(st.integers(1, 3))):
        possible = [path for path in places(changed) if path not in {("apiVersion",), ("kind",)}]
        assume(possible)
        *way, last = drawn.draw(st.sampled_from(possible))
        inner: Any = changed
        for step in way:
            inner = inner[step]
        match drawn.draw(st.sampled_from(["replace", "remove", "add"])):
            case "replace":
                inner[last] = drawn.draw(SOME | json_values)
            case "remove":
                del inner[last]
            case "add" if isinstance(inner, dict):
                inner[drawn.draw(st.sampled_from(["extra", "image", "on", "A-B", "0"]))] = "1"
            case _:
                inner.append(inner[last])
    assert fits(changed) == reference_validator(changed["kind"]).is_valid(changed)
    documents = read_yaml(to_yaml_value(changed).encode(), "f.yaml").documents
    assume(documents)
    found = list(violations(documents[0]))
    assert refused(found) == reference_refused(changed)
    for violation in found:
        lines = [str(problem) for problem in explain(violation)]
        assert len(lines) == count(violation) > 0
        assert all(line.startswith("f.yaml:") for line in lines)
