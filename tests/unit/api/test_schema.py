"""What the schemas refuse, and that there are words for all of it."""

import copy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from engine.api.kubernetes_schema import CORE, KubernetesSchema
from engine.api.schema import schema_validator, violations
from engine.api.schema_messages import explain, unknown_names
from engine.api.versions import API_VERSION, ENGINE_CONFIG, JOB_DEFAULTS, JOB_SPEC
from engine.api.yaml_reader import read_yaml
from tests.support.yaml_text import to_yaml_value
from tests.unit.api.test_schemas import DESIGN, EXAMPLES
from tests.unit.strategies import json_values

WHOLE: dict[str, Any] = read_yaml(DESIGN.encode(), "design.yaml")[0][0].data
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


def fits(data: dict[str, Any]) -> bool:
    return schema_validator(data["kind"]).is_valid(data)


def places(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Path of every value."""
    found = [path] if path else []
    if isinstance(data, dict | list):
        for key, value in data.items() if isinstance(data, dict) else enumerate(data):
            found += places(value, (*path, key))
    return found


@pytest.mark.parametrize("data", [WHOLE, CONFIG, DEFAULTS], ids=lambda data: data["kind"])
def test_what_is_whole_is_valid(data: dict[str, Any]) -> None:
    assert fits(data)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_so_is_every_example(path: Path) -> None:
    for document in read_yaml(path.read_bytes(), str(path))[0]:
        assert fits(document.data)


@pytest.mark.parametrize("data", [WHOLE, CONFIG, DEFAULTS], ids=lambda data: data["kind"])
@given(st.data())
def test_whatever_is_refused_is_explained_as_often_as_it_is_counted(
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
    documents = read_yaml(to_yaml_value(changed).encode(), "f.yaml")[0]
    assume(documents)
    found = list(violations(documents[0]))
    assert fits(changed) == (not found)
    for error in found:
        lines = [message for _, _, message, _ in explain(error)]
        is_additional = error.validator == "additionalProperties"
        assert len(lines) == (len(unknown_names(error)) if is_additional else 1) > 0


def test_a_pattern_is_about_all_of_a_text() -> None:
    """To Python `$` also matches before a last line break."""
    name = {**WHOLE, "metadata": {"name": "build\n"}}
    assert not fits(name)


def test_a_list_of_mappings_that_must_differ_is_judged_in_linear_time() -> None:
    unsortable = [{str(number): [number]} for number in range(20_000)]
    spec = {**WHOLE["spec"], "retry": {"on": [*unsortable, unsortable[0]]}}
    found = schema_validator(JOB_SPEC).iter_errors({**WHOLE, "spec": spec})
    assert "uniqueItems" in {error.validator for error in found}


def test_a_schema_may_refer_to_another_one_that_is_handed_in() -> None:
    definitions = {f"{CORE}.SecurityContext": {"required": ["a"]}}
    own = KubernetesSchema(lambda _: {"definitions": definitions})
    spec = {**WHOLE, "spec": {"securityContext": {}}}
    (error,) = schema_validator(JOB_SPEC, own).iter_errors(spec)
    assert (list(error.absolute_path), error.validator) == (["spec", "securityContext"], "required")
