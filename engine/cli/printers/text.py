"""Makes text harmless to terminals and CI logs: no control character, no workflow command.

Specs, file names, the cluster and containers may hold any text. All that is printed of it goes
through `sanitize_line`, `sanitize_text`, `sanitize_log`, `format_rows` or `to_json`.
"""

import json
import re
import unicodedata
from collections.abc import Callable
from typing import Any

LONGEST_TEXT = 40_000
"""Characters: room for the longest message of a record."""
_WIDE = frozenset("WF")
_NARROW_LIMIT = 0x300
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "m"))
_ASTRAL = 0x10000
_GAP = re.compile(r"\s+")
_CI_COMMAND = re.compile(
    r"##(?=\[|vso\[|teamcity\[)"  # anywhere in a line: GitHub, Azure, TeamCity
    r"|^\s*(?:::|section_(?:start|end):|travis_fold:|(?:---|\+\+\+|~~~|\^\^\^) )"
)

_COLOUR = re.compile(r"(\x1b\[[0-9;]*m)")


def is_ci_command(line: str) -> bool:
    """Whether a CI system that shows this line as a log would obey it."""
    return _CI_COMMAND.search(line) is not None


def sanitize_line(text: str) -> str:
    """`text` on one line; � replaces what a terminal or a CI system would obey."""
    return _harmless(_GAP.sub(_gap, text[:LONGEST_TEXT]).strip())


def sanitize_text(text: str) -> str:
    """`text` line by line, indented as it is; otherwise as `sanitize_line`."""
    return "\n".join(_harmless(line.expandtabs()) for line in text.splitlines())


def sanitize_log(text: str) -> str:
    """Output of a container, line by line as `sanitize_text`; it keeps its colours."""
    return "\n".join(map(_log_line, text.splitlines()))


def to_json(value: Any, **settings: Any) -> str:
    """`value` as JSON; what a terminal or a CI system would obey is escaped, and reads back as is.

    Guarantees: valid JSON that can be encoded as UTF-8, whatever the strings hold.
    """
    return escape(json.dumps(value, **{"ensure_ascii": False, **settings}))


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
    """As much of both ends of `text` as fits: the end of a message has its cause."""
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


def _gap(found: re.Match[str]) -> str:
    """Blanks stay as they are; a gap with anything else in it becomes one."""
    return found[0] if not found[0].strip(" ") else " "


def _harmless(line: str) -> str:
    line = _CI_COMMAND.sub(_disarm, line)
    if line.isprintable():
        return line
    return "".join(char if char.isprintable() else "�" for char in line)


def _log_line(line: str) -> str:
    line = _CI_COMMAND.sub(_disarm, line.expandtabs())
    return "".join(
        part if _COLOUR.fullmatch(part) else _harmless(part) for part in _COLOUR.split(line)
    )


def _disarm(found: re.Match[str]) -> str:
    command = found[0].lstrip()
    return f"{found[0][: -len(command)]}�{command[1:]}"


def _columns(char: str) -> int:
    if ord(char) < _NARROW_LIMIT:
        return 1
    if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in _WIDE else 1
