from pathlib import Path
from typing import Any

import pytest

from engine.errors import RenderError
from engine.render.templates import Templates
from tests.unit.builders import write

HEAD = "apiVersion: v1\nkind: Pod\n"


def rendered(folder: Path, text: str | bytes, **variables: Any) -> dict[str, Any]:
    write(folder, "own/pod.yaml.j2", text)
    return Templates(folder).render("own", "pod", variables)


def refusal(folder: Path, text: str | bytes, **variables: Any) -> str:
    with pytest.raises(RenderError) as error:
        rendered(folder, text, **variables)
    return str(error.value)


def test_an_expression_is_a_whole_value(tmp_path: Path) -> None:
    made = rendered(tmp_path, HEAD + "a: {{ x }}\nb: {{ 'p-' ~ y }}\n", x={"k": [1, None]}, y="q")
    assert (made["a"], made["b"]) == ({"k": [1, None]}, "p-q")


def test_a_whole_number_is_one_however_it_was_computed(tmp_path: Path) -> None:
    made = rendered(tmp_path, "a: {{ 10 / 2 }}\nb: {{ 0.5 }}\nc: {{ [1.0] }}\n")
    assert repr(made) == "{'a': 5, 'b': 0.5, 'c': [1]}"


def test_a_string_that_looks_like_a_template_is_not_rendered_again(tmp_path: Path) -> None:
    assert rendered(tmp_path, "a: {{ x }}", x="{{ y }}") == {"a": "{{ y }}"}


def test_an_undefined_variable_is_reported_at_its_line(tmp_path: Path) -> None:
    words = refusal(tmp_path, HEAD + "a: {{ nope }}\n")
    assert words.startswith(f"{tmp_path}/own/pod.yaml.j2:3:1: 'nope' is undefined")
    assert "test for it first" in words


def test_an_undefined_field_is_reported_at_its_line(tmp_path: Path) -> None:
    words = refusal(tmp_path, HEAD + "\n\na: {{ spec.nope }}\n", spec={})
    assert words.startswith(f"{tmp_path}/own/pod.yaml.j2:5:1: 'dict object' has no attribute")


def test_a_syntax_error_is_reported_at_its_line(tmp_path: Path) -> None:
    words = refusal(tmp_path, HEAD + "{% if x %}\n")
    assert words.startswith(f"{tmp_path}/own/pod.yaml.j2:3:1: Unexpected end of template")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: b: c\n", "the template's output is not valid YAML"),
        ("a: x-{{ x }}: {{ x }}\n", "an {{ expression }} must be a whole value"),
        ("a: {{ x }}{{ x }}\n", "an {{ expression }} must be a whole value"),
        ("a: x-{{ x }}\n", "an {{ expression }} must be a whole value"),
        ("a: |\n  x {{ x }}\n", "an {{ expression }} must be a whole value"),
        ("{% set y %}x: {{ x }}{% endset %}a: {{ y }}\n", "can't hold another expression"),
        ("a: 1\na: 2\n", "duplicate key"),
        ("- a\n", "output is not one mapping"),
        ("", "output is not one mapping"),
        ("a: 1\n---\nb: 2\n", "not valid YAML"),
        ("a: \x07\n", "not valid YAML"),
        ("a: {{ 1 // 0 }}\n", "division"),
        ("a: {{ 2 ** 70 }}\n", "more than 64 bits"),
        ("a: {{ x.y.z }}\n", "has no attribute 'y'"),
        ("a: {{ x() }}\n", "not callable"),
        ("a: {{ [1][4] }}\n", "has no element 4"),
        ("a: {{ x.__class__ }}\n", "unsafe"),
        ("a: {{ ''.__class__.__mro__ }}\n", "unsafe"),
        ("a: {{ x | nope }}\n", "No filter named 'nope'"),
        ("{% include 'own/gone.yaml.j2' %}", "gone.yaml.j2"),
        ("{% include 'own/pod.yaml.j2' %}", "recursion"),
        ("{% macro m() %}{{ m() }}{% endmacro %}a: {{ m() }}", "recursion"),
        ("a: {{ range(10000000) | list }}\n", "Range too big"),
        ("a: {{ x.encode('ascii') }}\n", "no YAML value"),
        ("a: {{ 'x' % 1 }}\n", "not all arguments converted"),
        ("a: 2020-01-01\n", "an unquoted date or time"),
        ("a: 2020-13-45\n", "not valid YAML"),
        ("a: .inf\n", "not a finite number"),
        ("a: !!binary aGk=\n", "a tag is not allowed"),
        ("a: !!set {x}\n", "a tag is not allowed"),
        ("a: !!int x\n", "not valid YAML"),
        ("a: &a [*a]\n", "inside its own anchor"),
        (b"a: \xff\n", "not UTF-8"),
    ],
)  # fmt: skip
def test_a_template_that_makes_no_manifest_is_refused_with_its_file(
    tmp_path: Path, text: str | bytes, words: str
) -> None:
    told = refusal(tmp_path, text, x="v")
    assert words in told
    assert "own/" in told


def test_a_missing_set_names_those_that_are_there(tmp_path: Path) -> None:
    write(tmp_path, "own/pod.yaml.j2", HEAD)
    with pytest.raises(RenderError) as error:
        Templates(tmp_path).render("nope", "pod", {})
    assert str(error.value) == "there is no template set nope (there are: job, own)"


def test_a_set_that_lacks_a_file_says_which_and_where_it_was_looked_for(tmp_path: Path) -> None:
    write(tmp_path, "own/pod.yaml.j2", HEAD)
    with pytest.raises(RenderError) as error:
        Templates(tmp_path).render("own", "secret", {})
    assert "the template set own has no own/secret.yaml.j2" in str(error.value)
    assert str(tmp_path) in str(error.value)


def test_a_template_cant_change_what_the_next_one_sees(tmp_path: Path) -> None:
    words = refusal(tmp_path, "{% set _ = x.append(1) %}\na: {{ x }}", x=[])
    assert "unsafe" in words or "not safely callable" in words
