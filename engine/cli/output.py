"""Output of the commands: masked, in columns, and harmless to terminals and CI logs.

Specs, file names, the cluster and containers may hold any text. All that is printed of it goes
through `sanitize_line`, `sanitize_text`, `sanitize_log`, `format_rows` or `to_json`: no control
character is left, and no workflow command.
"""

import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Sequence
from typing import Any, TextIO

import click

from engine.errors import Diagnostic, EngineError, InvalidInputError
from engine.status.outcome import State
from engine.telemetry.redact import REDACTOR
from engine.times import format_time
from engine.values import map_text

_LONGEST_TEXT = 40_000
"""Characters: room for the longest message of a record."""
COLOURS: dict[str, str] = {
    State.SUCCEEDED: "green",
    State.FAILED: "red",
    State.CANCELLED: "yellow",
    State.RUNNING: "cyan",
    State.QUEUED: "yellow",
    "Unknown": "red",
    "OK": "green",
    "SKIPPED": "yellow",
    "DEGRADED": "yellow",
    "FAILED": "red",
    "failed": "red",
}
"""What terminals show the names of states in, and words that are as good or as bad."""
_NARROWEST = 12
_COLUMN_GAP = 2
_ASTRAL = 0x10000
_GAP = re.compile(r"(?<! ) *+[^\S ]\s*")
"""Blanks with anything in them that is no blank."""
_CI_COMMAND = re.compile(
    r"##(?=\[|vso\[|teamcity\[)"  # anywhere in a line: GitHub, Azure, TeamCity
    r"|^\s*(?:::|section_(?:start|end):|travis_fold:|(?:---|\+\+\+|~~~|\^\^\^) )"
)
_COLOUR = re.compile(r"(\x1b\[[0-9;]*m)")


def echo(text: str, *, err: bool = False) -> None:
    """One line; what is secret in it was masked before it was made."""
    if err:
        echo_stderr(sanitize_line(text))
    else:
        click.echo(sanitize_line(text))


def echo_stderr(text: str) -> None:
    """On stderr; where that can't be written, the work goes on."""
    try:
        click.echo(text, err=True)
    except OSError:
        discard(sys.stderr)


def echo_result(text: str, *, nl: bool = True, color: bool | None = None) -> None:
    """On stdout; if it is closed, the exit code still has the result."""
    try:
        click.echo(text, nl=nl, color=color)
    except BrokenPipeError:
        discard(sys.stdout)


def discard(out: TextIO) -> None:
    """Point a closed stream at /dev/null, so that no later write or flush is an error."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), out.fileno())


def echo_note(text: str) -> None:
    """One line on stderr, masked."""
    echo(REDACTOR(text), err=True)


def echo_diagnostic(diagnostic: Diagnostic, *, err: bool = False) -> None:
    """One line, file:line:col first."""
    echo(str(map_text(diagnostic, REDACTOR)), err=err)


def echo_error(error: EngineError) -> None:
    """One line on stderr, or one for each finding."""
    if isinstance(error, InvalidInputError):
        for problem in error.problems:
            echo_diagnostic(problem, err=True)
    else:
        echo(f"error: {error.map_text(REDACTOR)}", err=True)


def echo_table(rows: Sequence[Sequence[str]], *, below: int = 0) -> None:
    """In columns, as wide as the terminal, if it is one."""
    colour = wants_colour(sys.stdout)
    for line in format_rows(rows, width=terminal_width(), colour=colour, below=below):
        click.echo(line, color=colour)


def echo_data(data: Any, output: str) -> None:
    """As JSON, or the same as YAML; what is secret in it was masked before it was made."""
    text = to_json(data, indent=2)
    if output == "yaml":
        from engine.cli.printers.manifests import print_yaml  # noqa: PLC0415 - slow

        print_yaml([json.loads(text)])
    else:
        click.echo(text)


def format_rows(
    rows: Sequence[Sequence[str]], *, width: int | None = None, colour: bool = False, below: int = 0
) -> list[str]:
    """A line for each row, in columns; the last one isn't padded, and is shortened to `width`.

    With `below`, a last cell that doesn't fit is put below its row, where it may fill so many lines
    of the terminal. A cell that is the name of a state, or as good or as bad, has its colour.
    """
    lines, used = [""] * len(rows), 0
    for number, column in enumerate(zip(*rows, strict=True), start=1):
        cells = [*map(sanitize_line, column)]
        if width is not None and number == len(rows[0]):
            room = max(width - used, _NARROWEST)
            cells = [
                f"\n    {truncate_middle(cell, below * width - 4)}"
                if below and display_width(cell) > room
                else truncate_middle(cell, room)
                for cell in cells
            ]
        widest = max(map(display_width, cells)) + _COLUMN_GAP
        used += widest
        for row, cell in enumerate(cells):
            lines[row] += colourise(cell, cell) if colour else cell
            lines[row] += " " * (widest - display_width(cell))
    return [re.sub(" +$", "", line, flags=re.MULTILINE) for line in lines]


def colourise(text: str, state: str) -> str:
    """`text` in the colour of `state`."""
    colour = COLOURS.get(state)
    return click.style(text, colour) if colour else text


def terminal_width() -> int | None:
    """Columns of the terminal that stdout is; None where it is none, and nothing is cut off."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def wants_colour(out: TextIO) -> bool:
    """On a terminal, unless NO_COLOR is set, or the terminal is a dumb one."""
    return out.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def is_ci_command(line: str) -> bool:
    """Whether a CI system that shows this line as a log would obey it."""
    return _CI_COMMAND.search(line) is not None


def sanitize_line(text: str) -> str:
    """`text` on one line; � replaces what a terminal or a CI system would obey."""
    return _harmless(_GAP.sub(" ", text[:_LONGEST_TEXT]).strip())


def sanitize_text(text: str) -> str:
    """`text` line by line, indented as it is; otherwise as `sanitize_line`."""
    return "\n".join(_harmless(line.expandtabs()) for line in text.splitlines())


def sanitize_log(text: str) -> str:
    """Output of a container, line by line as `sanitize_text`; it keeps its colours."""
    lines = []
    for line in text.splitlines():
        parts = _COLOUR.split(_CI_COMMAND.sub(_disarm, line.expandtabs()))
        lines.append("".join(p if _COLOUR.fullmatch(p) else _harmless(p) for p in parts))
    return "\n".join(lines)


def to_json(value: Any, **settings: Any) -> str:
    """`value` as JSON; what a terminal or a CI system would obey is escaped, and reads back as is.

    Times are texts. Guarantees: valid JSON that can be encoded as UTF-8, whatever the strings hold.
    """
    text = json.dumps(value, **{"ensure_ascii": False, **settings}, default=format_time)
    return escape(text)


def to_fields(value: object, *names: str) -> dict[str, Any]:
    """Attributes by their names in JSON."""
    return {camel_case(name): getattr(value, name) for name in names}


def camel_case(name: str) -> str:
    """What a name in Python is in JSON."""
    first, *words = name.split("_")
    return first + "".join(map(str.capitalize, words))


def escape(text: str, astral: Callable[[str], str] = lambda char: json.dumps(char)[1:-1]) -> str:
    """`text`, which is encoded and quoted, with escapes for all that is not harmless.

    `astral` makes the escapes of characters that need more than four digits.
    """
    text = _CI_COMMAND.sub(lambda found: found[0].replace("##", "#\\u0023"), text)
    if text.replace("\n", "").isprintable():
        return text
    return "".join(
        char
        if char.isprintable() or char == "\n"
        else f"\\u{ord(char):04x}"
        if ord(char) < _ASTRAL
        else astral(char)
        for char in text
    )


def display_width(text: str) -> int:
    """Columns that `text` takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # noqa: PLC0415 - rare

    return cell_len(text)


def truncate_middle(text: str, columns: int) -> str:
    """As much of both ends of `text` as fits: the end of a message has its cause."""
    if len(text) * 2 <= columns or display_width(text) <= columns:
        return text
    from rich.cells import chop_cells  # noqa: PLC0415 - rare

    head = chop_cells(text, columns // 2 - 1)[0]
    tail = chop_cells(text[::-1], columns - display_width(head) - 1)[0]
    return f"{head}…{tail[::-1]}"


def pluralise(count: int, word: str) -> str:
    """The count and the word, in the plural unless it is one."""
    return f"{count} {word}{'' if count == 1 else 's'}"


def _harmless(line: str) -> str:
    line = _CI_COMMAND.sub(_disarm, line)
    if line.isprintable():
        return line
    return "".join(char if char.isprintable() else "�" for char in line)


def _disarm(found: re.Match[str]) -> str:
    command = found[0].lstrip()
    return f"{found[0][: -len(command)]}�{command[1:]}"
