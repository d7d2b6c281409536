import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import StrictUndefined, UndefinedError
from ruamel.yaml import YAML

from engine.render.yaml_value import to_yaml_value
from tests.unit.strategies import NASTY, any_text, json_values


def read(text: str) -> Any:
    return YAML(typ="safe").load(text)


@pytest.mark.parametrize("text", NASTY)
def test_a_string_reads_back_as_itself_wherever_it_stands(text: str) -> None:
    written = to_yaml_value(text)
    assert "\n" not in written
    assert read(written) == text
    assert read(f"a: {written}\nb: 1") == {"a": text, "b": 1}
    assert read(f"- {written}\n- x") == [text, "x"]
    assert read(f"[{written}, {{k: {written}}}]") == [text, {"k": text}]


@pytest.mark.parametrize("length", [100, 249, 250, 251, 1024, 1025, 5000])
def test_a_key_of_any_length_reads_back(length: int) -> None:
    value = {"k" * length: {"\u2028" * length: [{"é" * length: 1}]}, "short": 2}
    assert read(f"a:\n  b: {to_yaml_value(value)}") == {"a": {"b": value}}


@given(json_values)
def test_any_json_value_reads_back_as_itself(value: Any) -> None:
    assert read(f"before: 1\nvalue: {to_yaml_value(value)}\nafter: 2") == {
        "before": 1,
        "value": value,
        "after": 2,
    }


@given(json_values)
def test_types_survive_with_the_values(value: Any) -> None:
    assert repr(read(to_yaml_value(value))) == repr(value)


@given(st.dictionaries(any_text, any_text))
def test_any_mapping_of_strings_keeps_its_keys_and_their_order(value: dict[str, str]) -> None:
    assert list(read(to_yaml_value(value)).items()) == list(value.items())


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, {"a": [math.nan]}])
def test_numbers_that_are_not_finite_are_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        to_yaml_value(value)


def test_what_is_no_json_is_refused() -> None:
    with pytest.raises(ValueError, match="a set is no YAML value"):
        to_yaml_value({"a": {1}})


def test_half_a_surrogate_pair_is_refused() -> None:
    with pytest.raises(UnicodeEncodeError):
        to_yaml_value("\ud800")


def test_an_undefined_variable_is_named() -> None:
    with pytest.raises(UndefinedError, match="'nope' is undefined"):
        to_yaml_value({"a": StrictUndefined(name="nope")})
