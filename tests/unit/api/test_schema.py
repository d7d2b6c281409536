"""The fast check says yes only to what the validator has nothing to say about."""

import copy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from engine.api.schema import is_valid, schema_errors
from engine.api.versions import API_VERSION, ENGINE_CONFIG, JOB_DEFAULTS
from engine.api.yaml_reader import read_yaml
from tests.unit.api.test_schemas import DESIGN, EXAMPLES
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
    ["", "a", "A b", "1h", "Always", "Evicted", "x" * 300, 0, 1, -1, 1.0, 0.5, 2**70, True, False]
)


def fits(data: dict[str, Any]) -> bool:
    return is_valid(data, data["apiVersion"], data["kind"])


def places(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Path of every value."""
    found = [path] if path else []
    if isinstance(data, dict | list):
        for key, value in data.items() if isinstance(data, dict) else enumerate(data):
            found += places(value, (*path, key))
    return found


@pytest.mark.parametrize("data", [WHOLE, CONFIG, DEFAULTS], ids=lambda data: data["kind"])
def test_what_is_valid_is_settled_by_the_fast_check_alone(data: dict[str, Any]) -> None:
    assert not schema_errors(data, data["apiVersion"], data["kind"])
    assert fits(data)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_so_is_every_example(path: Path) -> None:
    for document in read_yaml(path.read_bytes(), str(path)).documents:
        assert fits(document.data)


@pytest.mark.parametrize("data", [WHOLE, CONFIG, DEFAULTS], ids=lambda data: data["kind"])
@given(st.data())
def test_it_never_says_yes_to_what_the_validator_refuses(
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
    if fits(changed):
        assert not schema_errors(changed, changed["apiVersion"], changed["kind"])
