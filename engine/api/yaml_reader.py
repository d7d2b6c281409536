"""Read YAML safely, and find the place of every value so that an error can point at it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from engine.api.yaml_composer import Bounds, Composed, compose
from engine.api.yaml_events import HAS_LIBYAML, MAX_CHARACTERS_WITHOUT_LIBYAML
from engine.errors import Diagnostic, SourceLocation

MAX_BYTES = 1024 * 1024 if HAS_LIBYAML else MAX_CHARACTERS_WITHOUT_LIBYAML
BOUNDS = Bounds()
"""What a file that somebody wrote may hold."""

_WILL_BE_LOCATED = re.compile("secrets|registryCredentials")
"""A job knows where its secrets stand: a text that may have some is read with places at once."""
_PLAIN = re.compile(r"[-+.\w]+")

Path = tuple[str | int, ...]
"""The keys and indexes that lead to a value from the top of its document."""


@dataclass(frozen=True, slots=True)
class Document:
    """One YAML document: its data, and where in which text it stands.

    The places of all its values would be several times as large as the data: the text is read
    again, with them, when something is to be found.
    """

    file: str
    """The file's name in messages."""
    data: Any
    """Plain data; once it is converted, in the fields of the model."""
    written: Any
    """The data as the user wrote it."""
    place: SourceLocation
    """Where the document begins."""
    text: str = field(repr=False)
    """All of the file."""
    index: int
    """How many documents that aren't empty stand before this one in the file."""
    values: int
    """How many values it holds, its keys, mappings and lists counted."""
    moves: Mapping[Path, Path] = field(default_factory=dict)
    """Path in `data` -> path in `written`, where conversion moved a value."""

    def locate(self, path: Sequence[str | int], *, key: bool = False) -> SourceLocation:
        """Place of the value at `path` in `data`, or of its key; the nearest parent that exists
        otherwise.
        """
        read = _with_marks(self.text)
        value, at = read.documents[self.index].data, read.documents[self.index].mark
        for step in self.written_path(path):
            found = read.marks.get(id(value), {}).get(step)
            if found is None:
                break
            at = found[0] if key else found[1]
            value = value[step]
        return SourceLocation(self.file, *at)

    def written_scalar(self, path: Sequence[str | int]) -> str:
        """The plain scalar at `path` as it was written, `1.10` where `data` has 1.1.

        Empty where something else stands there, such as an alias.
        """
        where = self.locate(path)
        lines = self.text.split("\n", where.line)
        found = _PLAIN.match(lines[where.line - 1], where.column - 1) if where.line else None
        return found[0] if found else ""

    def written_path(self, path: Sequence[str | int]) -> Path:
        """Path of the value at `path` in `data` as the user wrote it."""
        return written_path(self.moves, tuple(path))


def written_path(moves: Mapping[Path, Path], path: Path) -> Path:
    """Where the value at `path` was before `moves`, which are keyed by new paths."""
    for length in range(len(path) if moves else 0, 0, -1):
        before = moves.get(path[:length])
        if before is not None:
            return (*before, *path[length:])
    return path


@dataclass(frozen=True, slots=True)
class YamlDocuments:
    """What a file holds."""

    documents: tuple[Document, ...] = ()
    """Its documents; none if there is any problem."""
    problems: tuple[Diagnostic, ...] = ()
    """What is wrong with it."""
    more: int = 0
    """How many problems there are besides."""


def read_yaml(text: bytes, file: str) -> YamlDocuments:
    """Documents of `text`; a file with any problem yields none, so that nothing half-read is used.

    Empty documents are left out. Errors are returned as problems, never raised.
    """
    if len(text) > MAX_BYTES:
        return _refused(
            SourceLocation(file),
            f"the file is larger than {MAX_BYTES:,} bytes",
            "split it into several files",
        )
    try:
        decoded = text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = text.count(b"\n", 0, error.start) + 1
        column = error.start - (text.rfind(b"\n", 0, error.start) + 1) + 1
        return _refused(
            SourceLocation(file, line, column), "this is not UTF-8 text", "save it as UTF-8"
        )
    found = _with_marks(decoded) if _WILL_BE_LOCATED.search(decoded) else compose(decoded, BOUNDS)
    if found.findings:
        problems = (
            Diagnostic(SourceLocation(file, *mark), message, hint)
            for mark, message, hint in found.findings
        )
        return YamlDocuments(problems=tuple(problems), more=found.more)
    return YamlDocuments(
        tuple(
            Document(file, data, data, SourceLocation(file, *mark), decoded, index, values)
            for index, (data, mark, values) in enumerate(found.documents)
        )
    )


def _refused(where: SourceLocation, message: str, hint: str) -> YamlDocuments:
    return YamlDocuments(problems=(Diagnostic(where, message, hint),))


@lru_cache(maxsize=2)
def _with_marks(text: str) -> Composed:
    """What a text holds, with the place of everything.

    Kept for the next question about it: most are about a spec and its defaults.
    """
    return compose(text, BOUNDS, keep_marks=True)
