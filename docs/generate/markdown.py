"""Pieces of Markdown."""

import re
from collections.abc import Iterable, Sequence

_SPECIAL = re.compile(r"([*_<>|\[\]])")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of cells that are Markdown already."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def text(words: str) -> str:
    """Plain words: nothing in them is markup."""
    return _SPECIAL.sub(r"\\\1", " ".join(words.split()))


def code(words: str) -> str:
    """As it is typed; "" is nothing."""
    return f"`{words.replace('|', chr(92) + '|')}`" if words else ""
