"""Console blocks of the pages: what a reader types, and what the page says is printed.

A fence of `console` is a list of commands, `$ command`, each with its output; a line `…` stands
for any number of lines, and `…` within a line for whatever is there. Around them a page has:

- a fence with `title="PATH"`: a file that the reader writes;
- `$ command >FILE &`: what runs beside the others from there on;
- `<!-- scene: NAME -->`: where it is played, from here on (tests/component/pages/scenes.py);
- `<!-- not run: REASON -->` above a fence that can't be.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

ANY = "…"
INTERRUPT = "^C"
_PIECE = re.compile(
    r"^ *<!-- (?P<word>scene|not run): (?P<said>.*?) -->$"
    r"|^(?P<indent> *)```(?P<info>\S[^\n]*)\n(?P<text>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)
_TITLE = re.compile(r'title="([^"]+)"')
_SHELLS = ("console", "sh", "bash", "shell")

_PROGRESS = re.compile(r"([a-z0-9-]+/[a-z0-9-]+): ")
_MAY_BE_MISSED = re.compile(
    r".*: Running( \(attempt \d+\))?$|waiting for .*: no answer for|\S+Z ready$"
)
_UNORDERED = re.compile(r"(deleted|kept|protected|invalid|would be deleted) ")
_VARIES = (
    (re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z"), "TIME"),
    (re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"), "UID"),
    (re.compile(r"\b(\d+(\.\d+)? ?(ms|[smhd]))+\b"), "AGE"),
    (re.compile(r"127\.0\.0\.1:\d+"), "ADDRESS"),
    (re.compile(r"(?<=\S) {2,}"), "  "),
)


@dataclass(frozen=True, slots=True)
class Scene:
    """Where what follows is played."""

    name: str


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A file that the page has its reader write."""

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class Command:
    """One command of a console block, and what is printed."""

    line: int
    """Of the page, from 1."""
    words: str
    printed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NotRun:
    """A block that can't be run."""

    line: int
    reason: str


Step = Scene | WrittenFile | Command | NotRun


def steps_of(page: str) -> Iterator[Step]:
    """What a page has its reader do. Errors: AssertionError for a shell's block in another form."""
    not_run = ""
    for piece in _PIECE.finditer(page):
        line = page.count("\n", 0, piece.start()) + 1
        if piece["word"] == "not run":
            not_run = piece["said"]
        elif piece["word"]:
            yield Scene(piece["said"])
        else:
            language = piece["info"].split()[0]
            text = re.sub(f"^{piece['indent']}", "", piece["text"], flags=re.MULTILINE)
            title = _TITLE.search(piece["info"])
            if language in _SHELLS and not_run:
                yield NotRun(line, not_run)
            elif language in _SHELLS:
                assert language == "console", (
                    f"line {line}: write ```console, and $ before commands"
                )
                yield from _commands(text, line)
            elif title and not not_run:
                yield WrittenFile(title[1], text)
            not_run = ""


def _commands(text: str, line: int) -> Iterator[Command]:
    lines = text.splitlines()
    starts = [i for i, words in enumerate(lines) if words.startswith("$ ")]
    assert starts[:1] == [0], f"line {line}: a console block begins with $"
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        words = [lines[start].removeprefix("$ ")]
        printed = lines[start + 1 : end]
        while words[-1].endswith("\\"):
            words.append(printed.pop(0).removeprefix("> "))
        yield Command(line + 1 + start, "\n".join(words), tuple(printed))


def fits(told: Sequence[str], printed: Sequence[str]) -> bool:
    """Whether a page's lines stand for what was printed: ids, times and ages may be others."""
    pattern = "".join(
        r"(?:.*\n)*?" if line == ANY else re.escape(line).replace(re.escape(ANY), ".*") + r"\n"
        for line in comparable(told)
    )
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in comparable(printed))) is not None


def comparable(lines: Iterable[str]) -> list[str]:
    """The lines without what varies.

    What happens to several jobs at once has no order; on a slow machine a container may have ended
    before anybody saw that it runs, and the server may keep somebody waiting.
    """
    kept = [_without_what_varies(line) for line in lines if not _MAY_BE_MISSED.match(line)]
    found: list[str] = []
    for group, some in groupby(kept, _group):
        lines_of_group = [*some]
        found += sorted(lines_of_group, key=_place) if group else lines_of_group
    return found


def _without_what_varies(line: str) -> str:
    for pattern, name in _VARIES:
        line = pattern.sub(name, line)
    return line.rstrip()


def _group(line: str) -> str:
    return "jobs" if _PROGRESS.match(line) else "objects" if _UNORDERED.match(line) else ""


def _place(line: str) -> str:
    progress = _PROGRESS.match(line)
    return progress[1] if progress else line
