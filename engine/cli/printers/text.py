"""Text for terminals: nothing that moves the cursor, and no wider than there is room."""

import unicodedata

_MANY = 10_000
_WIDE = frozenset("WF")
_NARROW_LIMIT = 0x300
_STEPS = ((86_400, "d"), (3_600, "h"), (60, "m"))


def one_line(text: str) -> str:
    """`text` on one line; what a terminal would obey, and not show, is shown as �."""
    flat = " ".join(text[:_MANY].split())
    if flat.isprintable():
        return flat
    return "".join(char if char.isprintable() else "�" for char in flat)


def width(text: str) -> int:
    """Columns that `text` takes."""
    return len(text) if text.isascii() else sum(_columns(char) for char in text)


def cut(text: str, columns: int) -> str:
    """As much of `text` as fits, with … where something is missing."""
    if width(text) <= columns:
        return text
    room, kept = columns - 1, []
    for char in text:
        room -= _columns(char)
        if room < 0:
            break
        kept.append(char)
    return "".join(kept) + ("…" if columns > 0 else "")


def age(seconds: float) -> str:
    """The largest unit alone, as in kubectl: 42s, 7m, 3h, 2d."""
    for size, unit in _STEPS:
        if seconds >= 2 * size:
            return f"{int(seconds // size)}{unit}"
    return f"{max(0, int(seconds))}s"


def many(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"


def _columns(char: str) -> int:
    if ord(char) < _NARROW_LIMIT:
        return 1
    if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in _WIDE else 1
