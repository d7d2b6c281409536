"""From the text of a file to ruamel.yaml's nodes, within bounds, or to one error at its place.

The C parser composes by recursion: 32,768 brackets end the process. So its events
are counted first, and an alias counts with its whole value.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn, TypeVar

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    CollectionEndEvent,
    CollectionStartEvent,
    DocumentStartEvent,
    MappingStartEvent,
    ScalarEvent,
)
from ruamel.yaml.nodes import Node
from ruamel.yaml.reader import ReaderError
from ruamel.yaml.resolver import Resolver

from engine.errors import Diagnostic, SourceLocation

MAX_DEPTH = 64
MAX_VALUES = 40_000
"""Keys, values, mappings and lists of one file."""
MAX_ENTRIES = 1_000
"""Of one mapping or list."""
MAX_CHARACTERS = 2 * 1024 * 1024
"""Of all keys and values."""
MAX_DOCUMENTS = 500
MAX_CHARACTERS_IN_PYTHON = 32 * 1024
"""The parser in Python takes a hundred times as long as the one in C."""

NOT_YAML = "not valid YAML: "
"""What the message of a syntax error begins with."""

_SMALL = 2_000
"""So few characters, with few brackets and no alias, are within all bounds."""
_TOO_DEEP = f"nested more than {MAX_DEPTH} levels deep"
_OWN_ANCHOR = "an alias (*name) inside its own anchor (&name) never ends"
_SPLIT = "split it into several files"

_Read = TypeVar("_Read")


_NO_VALUE = "did not find expected node content"
_MEANINGS = {
    _NO_VALUE: ("a value is missing here, or a bracket before it is not closed", ""),
    "did not find expected ','": (
        "this bracket is not closed, or lacks a comma",
        "close it, or put a comma between its entries",
    ),
    "found unexpected end of stream": ("this quote is not closed", ""),
    "did not find expected key": (
        "this is not a key of the mapping above",
        "indent the keys of one mapping alike, and quote a value that more text follows",
    ),
    "mapping values are not allowed in this context": (
        "a ': ' is not allowed here",
        "quote a value that contains ': ', and indent the keys of one mapping alike",
    ),
    "found character that cannot start any token": (
        "no value begins with this character",
        "indent with spaces: YAML allows no tabs; and quote values that start with @ or `",
    ),
}
"""The parser's complaints, by how they begin, in plain words and with a hint."""
_REFUSED_IN_C_ALONE = {"found unexpected ':'", _NO_VALUE}
"""The old libyaml that ruamel.yaml brings refuses `{image: redis:7}` and `[Result:, x]`."""
_AT_THE_START = (
    "did not find expected ','",
    "found unexpected end of stream",
    "could not find expected ':'",
)
"""These are reported where the thing begins, not where the parser gave up."""


class _Resolver(Resolver):  # type: ignore[misc]
    """YAML 1.2, whatever version a text names."""

    processing_version = (1, 2)

    def __init__(self, version: Any = None, loader: Any = None, loadumper: Any = None) -> None:  # noqa: ARG002
        super().__init__(loadumper if loader is None else loader)


def require_bounds(text: str) -> None:
    """Errors: YAMLError at the first thing that is too much, or that isn't YAML."""
    if len(text) > _SMALL or "*" in text or "&" in text or sum(map(text.count, "[{-?")) > MAX_DEPTH:
        _with_either_parser(text, _count_events)


def compose(text: str) -> tuple[Node, ...]:
    """The node of each document.

    Assumptions: the text is within the bounds. Errors: YAMLError.
    """
    return _with_either_parser(text, _compose_all)


def explain_syntax(error: YAMLError, text: str, file: str) -> Diagnostic:
    """The error of a text, in the parser's own words where there are no plainer ones."""
    if isinstance(error, ReaderError):
        before = text[: max(text.find(chr(error.character)), 0)]
        column = len(before) - before.rfind("\n")
        where = SourceLocation(file, before.count("\n") + 1, column)
        return Diagnostic(where, f"{NOT_YAML}{error.reason}")
    problem, mark = str(error.problem), error.problem_mark
    if problem.startswith(_AT_THE_START):
        mark = error.context_mark or mark
    where = SourceLocation(file, mark.line + 1, mark.column + 1)
    if isinstance(error, _TooMuchError):
        return Diagnostic(where, problem, error.note)
    for complaint, (message, hint) in _MEANINGS.items():
        if problem.startswith(complaint):
            return Diagnostic(where, NOT_YAML + message, hint)
    context = f", {error.context}" if error.context else ""
    return Diagnostic(where, f"{NOT_YAML}{problem}{context}")


def _parser(*, pure: bool = False) -> YAML:
    parser = YAML(typ="safe", pure=pure)
    parser.Resolver = _Resolver
    return parser


class _OfThread(threading.local):
    """To make a parser takes longer than to read a short text, for it looks for plug-ins."""

    def __init__(self) -> None:
        self.parser = _parser()


_OF_THREAD = _OfThread()


def _with_either_parser(text: str, read: Callable[[YAML, str], _Read]) -> _Read:
    """By the parser in C, else, for a short text, by the one in Python, which allows more."""
    parser = _OF_THREAD.parser
    parser.doc_infos.clear()  # it grows with each text
    try:
        return read(parser, text)
    except MarkedYAMLError as error:
        if error.problem not in _REFUSED_IN_C_ALONE or len(text) > MAX_CHARACTERS_IN_PYTHON:
            raise
        try:
            return read(_parser(pure=True), text)
        except _TooMuchError:
            raise
        except YAMLError:
            raise error from None


def _compose_all(yaml: YAML, text: str) -> tuple[Node, ...]:
    return tuple(yaml.compose_all(text))


def _count_events(yaml: YAML, text: str) -> None:
    counter = _Counter()
    for event in yaml.parse(text):
        counter.count(event)


class _TooMuchError(MarkedYAMLError):  # type: ignore[misc]
    """A text goes beyond a bound."""


class _Size(NamedTuple):
    """What an anchor's aliases count as."""

    values: int
    characters: int
    height: int
    """Levels of mappings and lists."""


_ENDLESS = _Size(0, 0, MAX_DEPTH + 1)


@dataclass(slots=True)
class _Collection:
    """A mapping or list that isn't complete, with what was counted before it."""

    start: Any
    values: int
    characters: int
    entries: int = 0
    height: int = 1


class _Counter:
    """Counts what a text becomes, event by event."""

    def __init__(self) -> None:
        self._values = self._characters = self._documents = 0
        self._open: list[_Collection] = []
        self._anchored: dict[str, _Size] = {}

    def count(self, event: Any) -> None:
        """Errors: _TooMuchError."""
        if isinstance(event, ScalarEvent):
            self._begin(event, _Size(1, len(event.value), 0))
        elif isinstance(event, CollectionStartEvent):
            self._begin(event, _Size(1, 0, 0))
            if event.anchor:
                self._anchored[event.anchor] = _ENDLESS
            self._open.append(_Collection(event, self._values, self._characters))
            if len(self._open) > MAX_DEPTH:
                self._refuse(event, _TOO_DEEP)
        elif isinstance(event, CollectionEndEvent):
            self._end(self._open.pop())
        elif isinstance(event, AliasEvent):
            size = self._anchored.get(event.anchor, _Size(1, 0, 0))
            if len(self._open) + size.height > MAX_DEPTH:
                self._refuse(event, _TOO_DEEP, _OWN_ANCHOR)
            self._add(event, size)
        elif isinstance(event, DocumentStartEvent):
            self._anchored.clear()
            self._documents += 1
            if self._documents > MAX_DOCUMENTS:
                self._refuse(event, f"more than {MAX_DOCUMENTS:,} documents", _SPLIT)

    def _begin(self, event: Any, size: _Size) -> None:
        if event.anchor:
            if event.anchor in self._anchored:
                self._refuse(event, f"a second anchor &{event.anchor}", "name each anchor once")
            self._anchored[event.anchor] = size
        self._add(event, size)

    def _end(self, done: _Collection) -> None:
        if done.start.anchor:
            values, characters = self._values - done.values, self._characters - done.characters
            self._anchored[done.start.anchor] = _Size(values + 1, characters, done.height)
        if self._open:
            self._open[-1].height = max(self._open[-1].height, done.height + 1)

    def _add(self, event: Any, size: _Size) -> None:
        self._values += size.values
        self._characters += size.characters
        if self._values > MAX_VALUES or self._characters > MAX_CHARACTERS:
            too_many = self._values > MAX_VALUES
            most = f"{MAX_VALUES:,} values" if too_many else f"{MAX_CHARACTERS:,} characters"
            hint = "each alias (*name) counts as what it stands for" if self._anchored else _SPLIT
            self._refuse(event, f"the file grows to more than {most}", hint)
        if self._open:
            holder = self._open[-1]
            holder.entries += 1
            holder.height = max(holder.height, size.height + 1)
            is_mapping = isinstance(holder.start, MappingStartEvent)
            if holder.entries > (2 * MAX_ENTRIES if is_mapping else MAX_ENTRIES):
                what = "mapping" if is_mapping else "list"
                self._refuse(holder.start, f"this {what} has more than {MAX_ENTRIES:,} entries")

    def _refuse(self, event: Any, problem: str, hint: str = "") -> NoReturn:
        raise _TooMuchError(problem=problem, problem_mark=event.start_mark, note=hint)
