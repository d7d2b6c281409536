import gc

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import CBaseLoader

from engine.api.yaml_reader import MAX_BYTES, read_yaml
from tests.unit.strategies import NASTY


def problems(text: str | bytes) -> list[str]:
    raw = text if isinstance(text, bytes) else text.encode()
    return [str(problem) for problem in read_yaml(raw, "f.yaml")[1]]


def data(text: str | bytes) -> list[object]:
    raw = text if isinstance(text, bytes) else text.encode()
    documents, problems = read_yaml(raw, "f.yaml")
    assert problems == ()
    return [document.data for document in documents]


BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]\n"
    for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)


def test_the_c_parser_is_in_use() -> None:
    parser = CBaseLoader.__bases__[0]
    assert parser.__name__ == "CParser"
    assert parser.__module__.endswith("_ruamel_yaml")


def test_a_text_leaves_nothing_to_the_garbage_collector() -> None:
    """A loader of the library refers to itself: thousands of files would wait for a collection."""
    data("a: first\n")
    gc.collect()
    gc.disable()
    try:
        for number in range(3):
            data(f"a: {number}\n")
        loaders = [one for one in gc.get_objects() if isinstance(one, CBaseLoader.__bases__[0])]
    finally:
        gc.enable()
    assert loaders == []


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: 1\na: 2\n",
         'f.yaml:2:1: duplicate key "a" (the first is at line 1; remove one)'),
        ("a:\n  b: 1\n  c: 2\n  b: 3\n",
         'f.yaml:4:3: duplicate key "b" (the first is at line 2; remove one)'),
        ("apiVersion: a\nkind: b\napiVersion: a\nkind: b\n",
         'f.yaml:3:1: a second "apiVersion" in one document (is --- missing above it?)'),
        ("a:\n  apiVersion: b\n  apiVersion: c\n",
         'f.yaml:3:3: duplicate key "apiVersion" (the first is at line 2; remove one)'),
        ("a: 2020-01-01\n",
         "f.yaml:1:4: an unquoted date or time (quote it to keep it as text)"),
        ("a: [2020-01-01]\n",
         "f.yaml:1:5: an unquoted date or time (quote it to keep it as text)"),
        ("a: .inf\n", "f.yaml:1:4: this is not a finite number (quote it to keep it as text)"),
        ("a: .nan\n", "f.yaml:1:4: this is not a finite number (quote it to keep it as text)"),
        ("1: a\n", "f.yaml:1:1: a key must be a string, not 1 (quote it)"),
        ("true: a\n", "f.yaml:1:1: a key must be a string, not true (quote it)"),
        ("[a]: b\n", "f.yaml:1:1: a key must be a string, not a list or mapping (quote it)"),
        ("a: !own x\n", "f.yaml:1:4: a tag is not allowed (quote a value that starts with !)"),
        ("a: !!python/name:os.system x\n",
         "f.yaml:1:4: a tag is not allowed (quote a value that starts with !)"),
        ("a: !!binary aGk=\n",
         "f.yaml:1:4: a tag is not allowed (quote a value that starts with !)"),
        ("a: !!int x\n", "f.yaml:1:4: this is no readable int (quote it to keep it as text)"),
        ("a: b\nc: " + "1" * 5000,
         "f.yaml:2:4: this whole number has more than 64 bits (quote it to keep it as text)"),
        ("a: &a [*a]\n",
         "f.yaml:1:8: an alias (*name) inside its own anchor (&name) never ends"),
        (BOMB, ("f.yaml:5:24: the file grows to more than 40,000 values "
          "(each alias (*name) counts with its whole value)")),
        ("a: *nope\n",
         "f.yaml:1:4: not valid YAML: found undefined alias (quote a value that starts with *)"),
        (b"a: \xff\n", "f.yaml:1:4: this is not UTF-8 text (save it as UTF-8)"),
        (b"a: b\nc: d\xe9\n", "f.yaml:2:5: this is not UTF-8 text (save it as UTF-8)"),
        ("a: b\x07\n", "f.yaml:1:5: not valid YAML: control characters are not allowed"),
        ("a: 'b\n", "f.yaml:1:4: not valid YAML: this quote is not closed"),
        ("a: b: c\n", ("f.yaml:1:5: not valid YAML: a ': ' is not allowed here "
          "(quote a value that contains ': ', and indent the keys of one mapping alike)")),
        ("a:\n  b: {c: 1\n  d: 2\ne: 3\n", (
          "f.yaml:2:6: not valid YAML: this bracket is not closed, or lacks a comma "
          "(close it, or put a comma between its entries)")),
        ("a: [1, 2\nb: 3\n", ("f.yaml:1:4: not valid YAML: this bracket is not closed, or lacks a "
          "comma (close it, or put a comma between its entries)")),
        ("a: 1\nx: [\n", ("f.yaml:3:1: not valid YAML: a value is missing here, or a bracket "
          "before it is not closed")),
        ("a: |\n  x\n y: 1\n", ("f.yaml:3:2: not valid YAML: this is not a key of the mapping "
          "above (indent the keys of one mapping alike, "
          "and quote a value that more text follows)")),
        ("a: @b\n", ("f.yaml:1:4: not valid YAML: no value begins with this character "
          "(indent with spaces: YAML allows no tabs; and quote values that start with @ or `)")),
    ],
)  # fmt: skip
def test_bad_yaml_has_one_line_with_its_place(text: str | bytes, line: str) -> None:
    assert problems(text) == [line]


@pytest.mark.parametrize("text", ["a:\n\tb: c\n", "\ta: b\n"])
def test_a_tab_is_told_to_be_one(text: str) -> None:
    (line,) = problems(text)
    assert "indent with spaces: YAML allows no tabs" in line


@pytest.mark.parametrize("part", ["[", "{a: ", "- ", "? ", "[{"])
@pytest.mark.parametrize("closed", ["", "]"])
def test_endless_nesting_is_refused_without_falling_over(part: str, closed: str) -> None:
    """A recursive parser would end the process, not the call."""
    times = (MAX_BYTES - 10) // (len(part) + len(closed))
    assert "nested more than 64 levels deep" in problems(part * times + closed * times)[-1]


def test_a_file_above_the_limit_is_not_parsed() -> None:
    (line,) = problems("a: b\n" + "#" * (10 * MAX_BYTES))
    assert line == ("f.yaml: the file is larger than 1,048,576 bytes (split it into several files)")


def test_a_large_file_below_the_limit_is_read() -> None:
    text = "a: |\n" + "  - {x: [1]}\n" * 70_000
    assert len(text) < MAX_BYTES
    assert data(text) == [{"a": "- {x: [1]}\n" * 70_000}]


@pytest.mark.parametrize("text", ["", "\n", "# only a comment\n", "---\n", "---\n---\n", "\ufeff"])
def test_nothing_is_no_document(text: str) -> None:
    assert data(text) == []


def test_a_byte_order_mark_is_passed_over() -> None:
    assert data(b"\xef\xbb\xbfa: b\n") == [{"a": "b"}]


def test_several_documents_have_their_own_places() -> None:
    documents, _ = read_yaml(b"a: 1\n---\n# x\n\n---\nb: 2\n", "f.yaml")
    assert [document.data for document in documents] == [{"a": 1}, {"b": 2}]
    assert [str(document.place) for document in documents] == ["f.yaml:1:1", "f.yaml:6:1"]


def test_one_bad_document_takes_the_whole_file_with_it() -> None:
    documents, problems = read_yaml(b"a: 1\n---\nb: 2020-01-01\n", "f.yaml")
    assert documents == ()
    assert len(problems) == 1


def test_several_problems_are_all_told() -> None:
    assert len(problems("a: 2020-01-01\nb: 2020-01-01\nb: !x y\n")) == 4


def test_an_image_with_a_tag_may_stand_in_braces() -> None:
    """The C parser alone would refuse it."""
    text = "a: {image: redis:7, ports: [6379], b: &b x:y, c: *b}\nd: 1\n"
    assert data(text) == [
        {"a": {"image": "redis:7", "ports": [6379], "b": "x:y", "c": "x:y"}, "d": 1}
    ]
    assert problems("a: {image: redis:7}\nb: 2020-01-01\n") == [
        "f.yaml:2:4: an unquoted date or time (quote it to keep it as text)"
    ]


@pytest.mark.parametrize("part", ["[", "- "])
def test_endless_nesting_behind_such_an_image_is_refused_as_well(part: str) -> None:
    (line,) = problems("a: {b: redis:7}\nc:\n  " + part * 20_000)
    assert line.startswith("f.yaml:")


def test_anchors_and_merges_may_be_used() -> None:
    text = "base: &b {x: 1, y: 2}\nmore:\n  <<: *b\n  y: 3\nlist: [*b, *b]\n"
    (found,) = data(text)
    assert found == {
        "base": {"x": 1, "y": 2},
        "more": {"x": 1, "y": 3},
        "list": [{"x": 1, "y": 2}, {"x": 1, "y": 2}],
    }


def test_a_merged_value_is_located_where_it_was_written() -> None:
    (document,), _ = read_yaml(b"base: &b\n  x: 1\nmore:\n  <<: *b\n", "f")
    assert str(document.locate(["more", "x"])) == "f:2:6"


@pytest.mark.parametrize(
    ("path", "key", "place"),
    [
        ([], False, "f:1:1"),
        (["a"], True, "f:1:1"),
        (["a"], False, "f:2:3"),
        (["a", "b"], False, "f:2:6"),
        (["a", "b", 1], False, "f:2:10"),
        (["a", "b", 7], False, "f:2:6"),
        (["a", "nope", "x"], False, "f:2:3"),
    ],
)
def test_a_path_leads_to_the_nearest_place(path: list[str | int], key: bool, place: str) -> None:
    (document,), _ = read_yaml(b"a:\n  b: [1, 2]\n", "f")
    assert str(document.locate(path, key=key)) == place


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes", "yes"), ("no", "no"), ("on", "on"), ("null", None), ("~", None), ("true", True),
        ("0777", 777), ("0o17", 15), ("1_000", 1000), ("1e3", 1000), ("1.0", 1), ("1:30", "1:30"),
        ("'1'", "1"),
        ("3h15m", "3h15m"), ("1.20", 1.2),
    ],
)  # fmt: skip
def test_plain_values_are_read_as_yaml_1_2_says(text: str, value: object) -> None:
    assert data(f"a: {text}") == [{"a": value}]


PIECES = (*NASTY, "a: ", "- ", "\n", "\n  ", ": ", "&a ", "*a", "!!int ", "!!map ", "<<: ", "? ",
          "%TAG ! x\n", "{", "[", "}", "]", "'", '"', "|\n",
          ">-\n", "\t", "!!bool ", "1" * 20)  # fmt: skip


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(raw: bytes) -> None:
    documents, problems = read_yaml(raw, "f.yaml")
    assert not (documents and problems)


@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
def test_any_mix_of_yaml_is_read_or_refused_in_one_line_each(text: str) -> None:
    documents, problems = read_yaml(text.encode(), "f.yaml")
    assert not (documents and problems)
    for problem in problems:
        assert "\n" not in str(problem)
        assert str(problem).startswith("f.yaml:")
