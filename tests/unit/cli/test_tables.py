"""Tables: nothing is lost but on a terminal, and colour is where somebody looks at it."""

import io
import re

import pytest

from engine.cli.output import display_width, format_rows, wants_colour

ROWS = [("JOB", "STATE", "MESSAGE"), ("ci/build", "Failed", "it began " + "x" * 300 + " the cause")]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_nothing_is_cut_off_where_there_is_no_terminal() -> None:
    assert format_rows(ROWS)[1].endswith("x the cause")
    assert len(format_rows(ROWS)[1]) > 300


@pytest.mark.parametrize("width", [40, 80, 120, 400])
def test_a_terminals_width_is_used_and_the_cause_at_the_end_stays(width: int) -> None:
    line = format_rows(ROWS, width=width)[1]
    assert display_width(line) <= width
    assert line.endswith("cause")
    assert display_width(line) >= min(width, 330) - 1


def test_colour_changes_no_column() -> None:
    plain, painted = format_rows(ROWS), format_rows(ROWS, colour=True)
    assert painted[0] == plain[0]
    assert "\x1b[31mFailed\x1b[0m" in painted[1]
    assert re.sub(r"\x1b\[\d*m", "", painted[1]) == plain[1]


@pytest.mark.parametrize(
    ("out", "environment", "colour"),
    [
        (Terminal(), {}, True),
        (io.StringIO(), {}, False),
        (Terminal(), {"NO_COLOR": "1"}, False),
        (Terminal(), {"TERM": "dumb"}, False),
    ],
)
def test_colour_is_for_terminals(
    out: io.StringIO,
    environment: dict[str, str],
    colour: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert wants_colour(out) is colour
