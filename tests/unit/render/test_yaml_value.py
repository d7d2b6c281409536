import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import RenderError
from engine.render.templates import Templates
from tests.unit.builders import write
from tests.unit.strategies import NASTY, any_text, json_values

TEXT = """\
a: {{ value }}
b: 1
list:
  - {{ value }}
  - [{{ value }}, {k: {{ value }}}]
{{ key }}: {nested: {{ {"k": [value]} }}}
"""


@pytest.fixture(scope="module")
def templates(tmp_path_factory: pytest.TempPathFactory) -> Templates:
    folder = tmp_path_factory.mktemp("templates")
    write(folder, "own/pod.yaml.j2", TEXT)
    return Templates(folder)


def holds(templates: Templates, value: Any, key: str = "key") -> None:
    """The value is what the template makes of it, in every place and of the same type."""
    made = templates.render("own", "pod", {"value": value, "key": key})
    expected = {
        "a": value,
        "b": 1,
        "list": [value, [value, {"k": value}]],
        key: {"nested": {"k": [value]}},
    }
    assert repr(made) == repr(with_whole_numbers(expected))


def with_whole_numbers(value: Any) -> Any:
    """The same, with 1 for 1.0, as the API server reads it."""
    if isinstance(value, dict):
        return {key: with_whole_numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [with_whole_numbers(item) for item in value]
    is_whole = isinstance(value, float) and value.is_integer() and abs(value) < 2**53
    return int(value) if is_whole else value


def refused(templates: Templates, value: Any, key: Any = "key") -> str:
    with pytest.raises(RenderError) as error:
        templates.render("own", "pod", {"value": value, "key": key})
    return str(error.value)


@pytest.mark.parametrize("text", NASTY)
def test_a_string_is_read_as_itself_wherever_it_is(templates: Templates, text: str) -> None:
    holds(templates, text)


@pytest.mark.parametrize("length", [100, 250, 1024, 5000])
def test_a_key_of_any_length_is_one(templates: Templates, length: int) -> None:
    holds(templates, {"k" * length: {"\u2028" * length: [{"é" * length: 1}]}}, "k" * length)


@given(value=json_values)
def test_any_json_value_is_read_as_itself(templates: Templates, value: Any) -> None:
    holds(templates, value)


@given(value=st.dictionaries(any_text, any_text))
def test_any_mapping_of_strings_keeps_its_order(templates: Templates, value: Any) -> None:
    holds(templates, value)


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, {"a": [math.nan]}])
def test_numbers_that_are_not_finite_are_refused(templates: Templates, value: Any) -> None:
    assert "not JSON compliant" in refused(templates, value)


def test_what_is_no_json_is_refused(templates: Templates) -> None:
    assert "a set is no YAML value" in refused(templates, {"a": {1}})


def test_half_a_surrogate_pair_is_refused(templates: Templates) -> None:
    assert "surrogates not allowed" in refused(templates, "\ud800")


@pytest.mark.parametrize("key", [1, None, ["a"]])
def test_a_key_that_is_no_string_is_refused(templates: Templates, key: Any) -> None:
    assert "a key that is no string" in refused(templates, 1, key)


def test_a_value_that_repeats_a_key_is_refused(templates: Templates) -> None:
    assert "a duplicate key: 'b'" in refused(templates, 1, "b")
