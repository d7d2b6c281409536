import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.durations import format_duration, parse_duration
from tests.unit.strategies import any_text

CENTURY = 100 * 365 * 86400


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        (0, 0), ("0", 0), ("0s", 0), (11700, 11700), ("11700", 11700), ("90s", 90),
        ("3h15m", 11700), ("1h", 3600), ("7d", 604800), ("1w", 604800), ("1w2d", 777600),
        ("1500ms", 1.5), ("1.5h", 5400), ("15m3h", 11700), (" 1h ", 3600), (CENTURY, CENTURY),
    ],
)  # fmt: skip
def test_durations_as_people_write_them(text: str | int, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text",
    ["", " ", "h", "-1", "-1h", "+1h", "1 h", "1y", "1h30", "1.h", ".5h", "1,5h", "1e3", "0x10",
     "\u0661h", "²", "1H", "one hour", "1h\n2m", True, False, -1, 1.5, None, [], "inf", "nan"],
)  # fmt: skip
def test_everything_else_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration: use seconds, such as 11700"):
        parse_duration(text)


@pytest.mark.parametrize(
    "text", [CENTURY + 1, str(CENTURY + 1), "36501d", "9" * 400, "9" * 400 + "h"]
)
def test_more_than_a_hundred_years_is_refused(text: str | int) -> None:
    with pytest.raises(ValueError, match="is longer than a hundred years"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (59, "59s"), (60, "1m"), (11700, "3h15m"), (86400, "1d"), (694861, "8d1h1m1s")],
)
def test_a_duration_is_printed_in_its_shortest_form(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


@given(st.integers(0, CENTURY))
def test_whole_seconds_survive_printing_and_reading(seconds: int) -> None:
    assert parse_duration(format_duration(seconds)) == seconds
    assert parse_duration(seconds) == seconds
    assert parse_duration(str(seconds)) == seconds


@given(any_text)
def test_any_text_is_a_duration_or_refused_in_words(text: str) -> None:
    try:
        seconds = parse_duration(text)
    except ValueError as error:
        told = str(error)
    else:
        told = "a duration"
        assert 0 <= seconds <= CENTURY
    assert "a duration" in told or "a hundred years" in told
