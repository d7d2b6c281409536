"""What is read means what it means to ruamel.yaml's parser in Python: all of YAML 1.2."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML, CBaseLoader
from ruamel.yaml.error import YAMLError

from engine.api import yaml_reader
from engine.api.yaml_reader import read_yaml

PLAIN = [
    "~", "null", "Null", "NULL", "true", "True", "TRUE", "yes", "no", "on", "off", "y",
    "0", "1", "-1", "+1", "017", "0o17", "0x1F", "0b1", "1_000", "1:30", "190:20:30",
    "1.5", "1.", ".5", "1e3", "1.5e-3", "-.inf", ".nan", "1.2.3", "12e", "e12",
    "-", "abc", "a b", "2020-01-01", "2020-01-01T10:00:00Z", "2020-01-01 10:00:00", "x" * 200,
    "!!str 1", "!!int 7", "!!float 1", "!!bool true", "!!null x", "! 1", "'1'", '"true"',
    "|\n  1", ">\n  true", "9223372036854775807", "-9223372036854775808",
]  # fmt: skip


def ours(text: str) -> Any:
    documents, problems = read_yaml(text.encode(), "f")
    return None if problems else [repr(document.data) for document in documents]


def theirs(text: str) -> Any:
    """Null for what isn't plain data: dates, endless numbers, what can't be read."""
    try:
        documents = list(YAML(typ="safe", pure=True).load_all(text))
    except (YAMLError, ValueError):
        return None
    is_plain = all(map(_is_plain, documents))
    return [repr(_whole(data)) for data in documents if data is not None] if is_plain else None


def _whole(data: Any) -> Any:
    """Whole numbers as JSON has them: 1.0 is 1."""
    if isinstance(data, dict):
        return {key: _whole(value) for key, value in data.items()}
    if isinstance(data, list):
        return [_whole(value) for value in data]
    is_whole = isinstance(data, float) and data.is_integer() and abs(data) < 2**53
    return int(data) if is_whole else data


def _is_plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(isinstance(key, str) for key in value) and all(map(_is_plain, value.values()))
    if isinstance(value, list):
        return all(map(_is_plain, value))
    is_finite = not isinstance(value, float) or abs(value) < float("inf")
    is_small = not isinstance(value, int) or -(2**63) <= value < 2**63
    return isinstance(value, str | int | float | bool | None) and is_finite and is_small


def findings(text: str) -> list[str]:
    return [str(found).removeprefix("f:") for found in read_yaml(text.encode(), "f")[1]]


@pytest.mark.parametrize("value", PLAIN)
def test_plain_values_mean_what_they_mean_elsewhere(value: str) -> None:
    for text in (f"a: {value}\n", f"- {value}\n", f"{value}\n", f"[{value}, {value}]\n"):
        assert ours(text) == theirs(text), text


@given(st.lists(st.text("0123456789+-._:xobeEinfnaNtruefalsyz~=<> ", max_size=12), max_size=4))
def test_whatever_is_written_means_the_same(values: list[str]) -> None:
    text = "".join(f"- {value}\n" for value in values)
    expected = theirs(text)
    if expected is not None:
        assert ours(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "a: &a {x: 1, y: 2}\nb:\n  <<: *a\n  y: 3\nc: *a\n",
        "a: &a {x: 1, y: 2}\nb: &b {y: 3, z: 4}\nc: {<<: [*a, *b], x: 5}\nd: {<<: [*b, *a]}\n",
        "a: &a {x: 1}\nb: &b {<<: *a, y: 2}\nc: {<<: *b, z: 3}\n",
        "a: {<<: {x: 1}, y: 2}\n",
        "a: &a [1, x]\nb: *a\n",
        "a: &a k\n*a : b\n",
        "a: !!str 1\nb: !!int '7'\nc: !!map {a: b}\nd: !!seq [a]\n",
        "a: 1\nb: {a: 2, a: 3}\n",
        "a: {<<: 1}\n",
        "a: {<<: {x: 1}, <<: {y: 2}}\n",
        "a: {image: redis:7, url: http://x, e: 'a'}\n",
        "a: [Result:, x]\nb: {y: [:1]}\n",
        "a: b\n---\nc: d\n...\n--- e\n",
    ],
)
def test_merges_aliases_tags_and_colons_are_read_as_elsewhere(text: str) -> None:
    assert ours(text) == theirs(text)


def test_an_alias_is_made_once() -> None:
    (document,), _ = read_yaml(b"a: &a [x]\nb: [*a, *a]\n", "f")
    assert document.data["b"][0] is document.data["b"][1] is document.data["a"]


def test_of_two_anchors_with_one_name_the_later_one_counts() -> None:
    assert ours("a: &x 1\nb: &x 2\nc: *x\n") == ["{'a': 1, 'b': 2, 'c': 2}"]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('a: b\nc: "x\\ud800"\n', "2:"),
        ('a: b\nc: "\\ud83d\\ude00"\n', "2:"),
        ('a: b\n"\\udfff": c\n', "2:"),
        ('a: {b: c:d, "x": "\\ud800"}\n', "1:"),
    ],
)
def test_no_half_of_a_surrogate_pair_gets_in(text: str, line: str) -> None:
    (found,) = findings(text)
    assert found.startswith(line)
    assert "character" in found


@pytest.mark.parametrize(
    "number",
    ["9223372036854775808", "-9223372036854775809", "0x" + "f" * 17, "0xfff_" + "f" * 4000,
     "0o7" + "7" * 21, "0b1" + "1" * 64, "1" * 5000, "+" + "9" * 4301, "!!int '" + "1" * 80 + "'"],
)  # fmt: skip
@pytest.mark.parametrize("where", ["a: {}\n", "- {}\n", "{}\n", "a: {{b: [{}]}}\n"])
def test_no_number_of_more_than_64_bits_gets_in(number: str, where: str) -> None:
    (found,) = findings(where.format(number))
    assert "this whole number has more than 64 bits (quote it to keep it as text)" in found


@pytest.mark.parametrize(
    "date", ["2020-01-01", "2020-01-01T10:00:00", "2020-01-01 10:00:00.5", "2020-1-1t1:00:00 +1"]
)
def test_no_date_gets_in_with_or_without_a_zone(date: str) -> None:
    assert findings(f"a: {date}\n") == [
        "1:4: an unquoted date or time (quote it to keep it as text)"
    ]


# What is counted. `read` says how much of the text was looked at.


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Every event that was looked at, with bounds that are soon reached."""
    asked: list[Any] = []
    for name, bound in SMALL.items():
        monkeypatch.setattr(yaml_reader, f"MAX_{name}", bound)

    class Counting(CBaseLoader):  # type: ignore[misc]
        def get_event(self) -> Any:
            asked.append(super().get_event())
            return asked[-1]

    monkeypatch.setattr(yaml_reader, "CBaseLoader", Counting)
    yaml_reader._read.cache_clear()
    return asked


SMALL = {"VALUES": 200, "ENTRIES": 50}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("".join(f"A{n}: x\n" for n in range(9_000)),
         "1:1: this mapping has more than 50 entries"),
        ("a:\n" + "- x\n" * 9_000, "2:1: this list has more than 50 entries"),
        ("[" + "[x], " * 9_000 + "]", "1:1: this list has more than 50 entries"),
        ("[" + f"[{'[x, y], ' * 20}], " * 900 + "]",
         "the file grows to more than 200 values (split it into several files)"),
        ("---\na: b\n" * 9_000, "102:1: this file has more than 50 entries"),
        ("[" * 60_000, "1:65: nested more than 64 levels deep"),
        ("a: &a " + "x" * 400 + "\nb: [" + "*a, " * 900 + "]",
         ("the file grows to more than 200 values "
          "(each alias (*name) counts with its whole value)")),
        ("a: &a [" + "x, " * 40 + "]\nb: [" + "*a, " * 900 + "]",
         ("the file grows to more than 200 values "
          "(each alias (*name) counts with its whole value)")),
        ("a: &a {" + "".join(f"x{n}: 1, " for n in range(40)) + "}\n"
         + "".join(f"b{n}: {{<<: *a}}\n" for n in range(900)),
         ("the file grows to more than 200 values "
          "(each alias (*name) counts with its whole value)")),
    ],
)  # fmt: skip
def test_reading_ends_where_a_text_holds_too_much(counted: list[Any], text: str, line: str) -> None:
    (found,) = findings(text)
    assert found.endswith(line)
    assert len(counted) < 500


@pytest.mark.usefixtures("counted")
def test_aliases_count_over_all_documents_of_a_file() -> None:
    bomb = "a: &a [" + "x, " * 30 + "]\nb: [*a]\n---\n"
    assert ours(bomb * 2)
    assert "more than 200 values" in findings(bomb * 4)[0]


def test_an_alias_is_as_deep_as_what_it_stands_for() -> None:
    nested = "[" * 40 + "x" + "]" * 40
    assert ours(f"a: &a {nested}\nb: *a\n")
    (found,) = findings(f"a: &a {nested}\nb: {'[' * 30}*a{']' * 30}\n")
    assert found.startswith("2:34: nested more than 64 levels deep")


@pytest.mark.parametrize(
    "value", ["a?", "a?b", "redis:7", ":80", "x:y:z", "~redis:7", "h:", "http://x/?a=b", "1:30"]
)
@pytest.mark.parametrize("beside", ["b: c", "x: redis:7", "x: a?", '"x": y', "x: [z, 'a:b']"])
def test_colons_and_question_marks_within_values_are_read_in_braces(
    value: str, beside: str
) -> None:
    alone, more = f"{{v: '{value}', {beside}}}\n", "b: 'c:d?'\n"
    assert ours(f"a: {{v: {value}, {beside}}}\n{more}") == theirs(f"a: {alone}{more}") is not None


def test_a_date_beside_such_a_value_is_refused() -> None:
    (line,) = findings("a: {b: redis:7, c: 2020-01-01T10:00:00Z}\n")
    assert line == "1:20: an unquoted date or time (quote it to keep it as text)"
