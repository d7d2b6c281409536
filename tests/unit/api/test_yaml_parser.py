"""The parser that remembers reads what ruamel.yaml's own safe loader reads."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from engine.api import yaml_parser
from engine.api.yaml_parser import compose_all, compose_all_pure_python, construct

PLAIN = [
    "", "~", "null", "Null", "NULL", "true", "True", "TRUE", "yes", "no", "on", "off", "y",
    "0", "1", "-1", "+1", "017", "0o17", "0x1F", "0b1", "1_000", "1:30", "190:20:30",
    "1.5", "1.", ".5", "1e3", "1.5e-3", "-.inf", ".nan", "1.2.3", "12e", "e12",
    "=", "<<", "-", "abc", "a b", "2020-01-01", "2020-01-01T10:00:00Z", "x" * 200, "1" * 80,
    "!!str 1", "!!int 7", "'1'", '"true"', "|\n  1", ">\n  true",
]  # fmt: skip


def ours(text: str) -> Any:
    try:
        return [repr(construct(node)) for node in compose_all(text)]
    except (YAMLError, ValueError) as error:
        return type(error)


def theirs(text: str) -> Any:
    try:
        return [repr(data) for data in YAML(typ="safe").load_all(text)]
    except (YAMLError, ValueError) as error:
        return type(error)


@pytest.mark.parametrize("value", PLAIN)
def test_plain_values_mean_what_they_mean_elsewhere(value: str) -> None:
    for text in (f"a: {value}\n", f"- {value}\n", f"{value}\n", f"[{value}, {value}]\n"):
        assert ours(text) == theirs(text)


@given(st.lists(st.text("0123456789+-._:xobeEinfnaNtruefalsyz~=<> ", max_size=12), max_size=4))
def test_whatever_is_written_means_the_same(values: list[str]) -> None:
    text = "".join(f"- {value}\n" for value in values)
    assert ours(text) == theirs(text)


def test_a_merge_and_an_alias_are_followed() -> None:
    text = "a: &a {x: 1, y: 2}\nb:\n  <<: *a\n  y: 3\nc: *a\n"
    assert ours(text) == theirs(text)
    assert construct(compose_all(text)[0])["b"] == {"x": 1, "y": 3}


def test_without_the_c_parser_the_same_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "a: 1\n---\nb: [x, 0o17, ~]\n"
    fast = [construct(node) for node in compose_all(text)]
    monkeypatch.setattr(yaml_parser, "CParser", None)
    assert [construct(node) for node in compose_all(text)] == fast
    assert [construct(node) for node in compose_all_pure_python(text)] == fast


@pytest.mark.parametrize(
    "text",
    [
        "a: &a [1, x]\nb: *a\n",
        "1: a\ntrue: b\n~: c\n",
        "? [a, b]\n: c\n",
        "a: !!str 1\nb: !!int '7'\n",
        "a: 1\nb: {a: 2, a: 3}\n",
        "!!set {a, b}\n",
    ],
)
def test_what_is_not_plain_is_read_as_elsewhere(text: str) -> None:
    assert ours(text) == theirs(text)


def test_an_alias_is_made_once_and_may_hold_itself() -> None:
    data = construct(compose_all("a: &a [x]\nb: [*a, *a]\nc: &c {me: *c}\n")[0])
    assert data["b"][0] is data["b"][1] is data["a"]
    assert data["c"]["me"] is data["c"]
