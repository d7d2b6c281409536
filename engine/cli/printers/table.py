"""Tables as kubectl prints them; states in colour on a terminal."""

import os
import shutil
import sys
from collections.abc import Sequence
from typing import TextIO

from engine.cli.printers.text import display_width, sanitize_line, truncate_middle
from engine.status.outcome import State

STATE_COLOURS = {
    State.SUCCEEDED: "green",
    State.FAILED: "red",
    State.CANCELLED: "yellow",
    State.RUNNING: "cyan",
    State.QUEUED: "yellow",
}
"""What terminals show states in."""
_CODES = {"green": "32", "red": "31", "yellow": "33", "cyan": "36"}
_NARROWEST = 20
_STATES = {
    **{state.value: state for state in State},
    "Unknown": State.FAILED,
    "OK": State.SUCCEEDED,
    "SKIPPED": State.QUEUED,
    "DEGRADED": State.QUEUED,
    "FAILED": State.FAILED,
    "failed": State.FAILED,
}
"""Cells in the colour of a state."""
_GAP = "  "


def format_rows(
    rows: Sequence[Sequence[str]], *, width: int | None = None, colour: bool = False
) -> list[str]:
    """A line for each row, in columns; the last one isn't padded, and is shortened to `width`.

    A cell that is the name of a state, or as good or as bad as one, has its colour.
    """
    cells = [[sanitize_line(cell) for cell in row] for row in rows]
    widths = [max(map(display_width, column)) for column in zip(*cells, strict=True)]
    if width is not None:
        room = width - sum(widths[:-1]) - len(_GAP) * (len(widths) - 1)
        room = max(room, _NARROWEST)
        cells = [[*row[:-1], truncate_middle(row[-1], room)] for row in cells]
    return [_GAP.join(_paint(row, widths, colour=colour)).rstrip() for row in cells]


def colourise(text: str, state: State) -> str:
    """`text` in the colour of `state`."""
    colour = STATE_COLOURS.get(state)
    return f"\x1b[{_CODES[colour]}m{text}\x1b[0m" if colour else text


def terminal_width() -> int | None:
    """Columns of the terminal that stdout is; None where it is none, and nothing is cut off."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def wants_colour(choice: str, out: TextIO) -> bool:
    """Whether `--color auto|always|never` means colour: NO_COLOR and a dumb terminal mean none."""
    if choice != "auto":
        return choice == "always"
    return out.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def can_redraw() -> bool:
    """Whether stderr is a terminal on which the cursor can be moved."""
    return sys.stderr.isatty() and os.environ.get("TERM") not in ("dumb", "unknown")


def _paint(row: Sequence[str], widths: Sequence[int], *, colour: bool) -> list[str]:
    painted = []
    for cell, width in zip(row, widths, strict=True):
        padding = " " * (width - display_width(cell))
        state = _STATES.get(cell) if colour else None
        painted.append((colourise(cell, state) if state else cell) + padding)
    return painted
