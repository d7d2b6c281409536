"""Text for terminals: nothing that moves the cursor, no wider than there is room; tables."""

import sys
import unicodedata
from collections.abc import Sequence

LONGEST_TEXT = 40_000
"""Characters: room for the longest message of a record."""
_LONGEST_CELL = 100
_WIDE = frozenset("WF")
_NARROW_LIMIT = 0x300
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "m"))


def one_line(text: str) -> str:
    """`text` on one line; what a terminal would obey, and not show, is shown as �."""
    flat = " ".join(text[:LONGEST_TEXT].split())
    if flat.isprintable():
        return flat
    return "".join(char if char.isprintable() else "�" for char in flat)


def display_width(text: str) -> int:
    """Columns that `text` takes."""
    return len(text) if text.isascii() else sum(_columns(char) for char in text)


def truncate(text: str, columns: int) -> str:
    """As much of `text` as fits, with … where something is missing."""
    if display_width(text) <= columns:
        return text
    room, kept = columns - 1, []
    for char in text:
        room -= _columns(char)
        if room < 0:
            break
        kept.append(char)
    return "".join(kept) + ("…" if columns > 0 else "")


def truncate_middle(text: str, columns: int) -> str:
    """As much of both ends of `text` as fits: a message begins with what failed, ends with why."""
    if display_width(text) <= columns:
        return text
    head = truncate(text, max(1, columns // 2))
    room, kept = columns - display_width(head), []
    for char in reversed(text):
        room -= _columns(char)
        if room < 0:
            break
        kept.append(char)
    return head + "".join(reversed(kept))


def format_age(seconds: float) -> str:
    """The largest unit alone, as in kubectl: 42s, 7m, 3h, 2d."""
    for size, unit in _UNITS:
        if seconds >= 2 * size:
            return f"{int(seconds // size)}{unit}"
    return f"{max(0, int(seconds))}s"


def pluralise(count: int, word: str) -> str:
    """The count and the word, in the plural unless it is one."""
    return f"{count} {word}{'' if count == 1 else 's'}"


def message_cell(text: str) -> str:
    """`text` on one line; on a terminal no longer than a row of a table has room for."""
    line = one_line(text)
    return truncate_middle(line, _LONGEST_CELL) if sys.stdout.isatty() else line


def format_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Lines of a table; the last column is not padded."""
    table = [tuple(head), *(tuple(cell.replace("\n", " ") for cell in row) for row in rows)]
    widths = [max(len(row[column]) for row in table) for column in range(len(head))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in table
    )


def _columns(char: str) -> int:
    if ord(char) < _NARROW_LIMIT:
        return 1
    if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in _WIDE else 1
