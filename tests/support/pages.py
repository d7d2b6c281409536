"""The tables of docs/, which tests hold to what is so."""

import re
from collections.abc import Iterable, Iterator
from itertools import dropwhile, takewhile
from pathlib import Path

ROOT = Path(__file__).parents[2]


def table_of(page: str, heading: str) -> Iterator[list[str]]:
    """Cells of the first table below a heading, without its head."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    below = text.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    lines = dropwhile(lambda line: not line.startswith("|"), below.splitlines())
    rows = [*takewhile(lambda line: line.startswith("|"), lines)]
    for row in rows[2:]:
        cells = re.split(r"(?<!\\)\|", row)
        yield [cell.strip() for cell in cells[1:-1]]


def rights_of(rows: Iterable[tuple[str, str]]) -> dict[str, set[str]]:
    """Verbs by resource, of rows that name several of both."""
    found: dict[str, set[str]] = {}
    for resources, verbs in rows:
        for resource in resources.split(", "):
            found.setdefault(resource, set()).update(verbs.split(", "))
    return found
