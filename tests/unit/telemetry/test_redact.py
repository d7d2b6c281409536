import base64

from hypothesis import given
from hypothesis import strategies as st

from engine.telemetry.redact import MASK, Redactor

VALUES = st.lists(st.text(st.characters(codec="utf-8"), min_size=3, max_size=12), max_size=60)


@given(VALUES, st.lists(st.one_of(st.text(max_size=5), st.integers(0, 59)), max_size=8))
def test_no_value_is_left_in_any_text(values: list[str], parts: list[str | int]) -> None:
    redact = Redactor()
    redact.add(values)
    chosen = [
        part if isinstance(part, str) else values[part % len(values)] for part in parts if values
    ]
    for piece in redact("".join(chosen)).split(MASK):
        assert not any(value in piece for value in values)


def test_a_value_is_hidden_plain_and_in_base64() -> None:
    redact = Redactor()
    redact.add(["hunter2\n"])
    coded = base64.b64encode(b"hunter2\n").decode()
    assert redact(f"a hunter2 and {coded}.") == f"a {MASK} and {MASK}."


def test_the_longest_of_values_that_begin_alike_is_hidden_whole() -> None:
    redact = Redactor()
    redact.add(["pass", "password-1"])
    assert redact("password-1 pass") == f"{MASK} {MASK}"


def test_values_that_overlap_leave_nothing_of_each_other() -> None:
    redact = Redactor()
    redact.add(["abcd", "cdef"])
    assert redact("<abcdef>") == f"<{MASK}>"


def test_values_of_one_or_two_characters_are_left_alone() -> None:
    redact = Redactor()
    redact.add(["no", ""])
    assert redact("no news") == "no news"
