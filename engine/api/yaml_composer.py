"""From the events of a YAML text to plain data, and to what may not be in it.

Everything is counted as it is read: reading ends where a text holds too much, before anything of
that size is in memory. An alias counts as all that it stands for.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NoReturn

from yaml import YAMLError
from yaml.events import (
    AliasEvent,
    DocumentEndEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
    StreamStartEvent,
)

from engine.api.yaml_events import NextEvent, libyaml_events, may_be_read_otherwise, python_events
from engine.api.yaml_scalars import (
    MERGE,
    PREFIX,
    TEXT,
    TIMESTAMP,
    UnreadableScalarError,
    convert,
    plain_type,
    shared,
)
from engine.api.yaml_syntax import NOT_YAML, explain_syntax

MAX_DEPTH = 64
MAX_FINDINGS = 100

Mark = tuple[int, int]
"""Line and column, from 1."""
Marks = Mapping[int, Mapping[str | int, tuple[Mark, Mark]]]
"""Where things stand in each mapping and list, by its `id()`: key or index -> (key, value)."""

_QUOTE = "quote it to keep it as text"
_QUOTE_TAG = "quote a value that starts with !"
_SHOWN = 60
_SPLIT = "split it into several files"
_SURROGATE = re.compile("[\ud800-\udfff]")
_SECRETS = frozenset({"secrets", "registryCredentials"})
_NO_KEY: Any = object()
"""What comes next in a mapping is a key."""
_MERGE_KEY: Any = object()
"""What comes next in a mapping is merged into it."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The most that a text may hold."""

    values: int = 40_000
    """Keys, values, mappings and lists."""
    entries: int = 1_000
    """Of one mapping or list."""
    characters: int = 2 * 1024 * 1024
    """Of all keys and values."""
    documents: int = 500
    nul: bool = False
    """Whether a text may have NUL characters in it."""


class Finding(NamedTuple):
    """Something that may not be in a text."""

    mark: Mark
    message: str
    hint: str = ""


class ComposedDocument(NamedTuple):
    """One document that isn't empty."""

    data: Any
    mark: Mark
    """Where it begins."""
    values: int
    """How many there are in it."""


@dataclass(slots=True)
class Composed:
    """What a text holds; none of its documents may be used if there is any finding."""

    documents: list[ComposedDocument] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    more: int = 0
    """How many findings there are beyond those that are kept."""
    marks: Marks = field(default_factory=dict)


def compose(text: str, bounds: Bounds, *, keep_marks: bool = False) -> Composed:
    """Documents of `text`, or what is wrong with it. Guarantees: pure; never raises."""
    try:
        return _compose(text, bounds, keep_marks=keep_marks)
    except _MarksNeededError:
        return _compose(text, bounds, keep_marks=True)


def _compose(text: str, bounds: Bounds, *, keep_marks: bool) -> Composed:
    first = libyaml_events(text)
    try:
        return _Composer(text, bounds, keep_marks=keep_marks).compose(first or python_events(text))
    except YAMLError as error:
        if first is not None and may_be_read_otherwise(error, text):
            try:
                return _Composer(text, bounds, keep_marks=keep_marks).compose(python_events(text))
            except YAMLError:
                pass
        return Composed(findings=[Finding(*explain_syntax(error, text))])


class _TooMuchError(Exception):
    """Reading ends here; the finding is told."""


class _MarksNeededError(Exception):
    """A finding names two places."""


class _Anchored(NamedTuple):
    """What an alias stands for."""

    data: Any
    mark: Mark
    values: int
    characters: int
    height: int
    """How many levels of mappings and lists it has."""


class _Outer(NamedTuple):
    """What is around a mapping or list, as it was when that began."""

    data: dict[Any, Any] | list[Any] | None
    key: Any
    key_mark: Mark
    start: Event
    values: int
    characters: int
    deepest: int


class _Composer:
    """Reads one text. `_data` is the innermost mapping or list, `_key` that of its next value."""

    def __init__(self, text: str, bounds: Bounds, *, keep_marks: bool) -> None:
        self._bounds = bounds
        self._entries = bounds.entries
        self._keep_marks = keep_marks
        self._may_have_escapes = "\\" in text
        self._marks: dict[int, dict[str | int, tuple[Mark, Mark]]] = {}
        self._result = Composed(marks=self._marks)
        self._data: Any = None
        self._key: Any = None
        self._key_mark: Mark = (0, 0)
        self._outer: list[_Outer] = []
        self._root: Any = None
        self._root_mark: Mark = (0, 0)
        self._anchors: dict[str, _Anchored | None] = {}
        self._merges: dict[int, list[dict[Any, Any]]] = {}
        self._values = self._values_before = self._characters = self._documents = 0
        self._deepest = 0

    def compose(self, next_event: NextEvent) -> Composed:
        """Errors: YAMLError, _MarksNeededError."""
        handlers: Mapping[type[Event], Callable[[Any], None]] = {
            StreamStartEvent: lambda _event: None,
            DocumentStartEvent: self._start_document,
            DocumentEndEvent: self._end_document,
            ScalarEvent: self._scalar,
            AliasEvent: self._alias,
            MappingStartEvent: self._start_mapping,
            SequenceStartEvent: self._start_sequence,
            MappingEndEvent: self._end_mapping,
            SequenceEndEvent: self._end_collection,
        }
        try:
            while (kind := type(event := next_event())) is not StreamEndEvent:
                handlers[kind](event)
        except _TooMuchError:
            self._result.documents.clear()
        return self._result

    def _start_document(self, event: DocumentStartEvent) -> None:
        self._documents += 1
        if self._documents > self._bounds.documents:
            self._stop(event, f"more than {self._bounds.documents:,} documents", _SPLIT)
        self._root = None
        self._values_before = self._values
        self._anchors.clear()

    def _end_document(self, _event: DocumentEndEvent) -> None:
        if self._root is not None:
            values = self._values - self._values_before + 1
            self._result.documents.append(ComposedDocument(self._root, self._root_mark, values))

    def _scalar(self, event: ScalarEvent) -> None:
        """Most of what a text holds."""
        value: Any = event.value
        plain, quoted = event.implicit
        kind = plain_type(value) if plain else TEXT if quoted else _named_type(event.tag)
        if self._may_have_escapes:
            self._check_characters(event)
        if self._key is _NO_KEY:
            self._set_key(event, value, kind)
            return
        if kind is not TEXT:
            value = self._converted(event, kind)
        if event.anchor is not None:
            mark = _mark(event.start_mark)
            self._anchors[event.anchor] = _Anchored(value, mark, 1, len(event.value), 0)
        self._add(value, event)

    def _check_characters(self, event: ScalarEvent) -> None:
        if "\0" in event.value and not self._bounds.nul:
            self._find(event, "a NUL character", "no process can be given one")
        if not event.value.isascii() and _SURROGATE.search(event.value):
            hint = "write the character itself"
            self._find(event, "half a surrogate pair is no character", hint)

    def _converted(self, event: ScalarEvent, kind: str) -> Any:
        if kind == MERGE:
            return event.value
        if kind == TIMESTAMP:
            self._find(event, "an unquoted date or time", _QUOTE)
            return None
        try:
            return convert(kind, event.value)
        except UnreadableScalarError as error:
            self._find(event, str(error), _QUOTE)
        except KeyError:
            self._find(event, "a tag is not allowed", _QUOTE_TAG)
        return None

    def _set_key(self, event: ScalarEvent | AliasEvent, key: Any, kind: str) -> None:
        """What stands in the place of a key is the key of the next value."""
        data = self._data
        if kind is not TEXT:
            self._key = key
            self._set_odd_key(event, data, key, kind)
        else:
            self._key = shared(key)
            if key in data:
                self._find_duplicate(event, data)
        if len(data) >= self._entries:
            self._stop_at_entries("mapping")
        if self._keep_marks:
            self._key_mark = _mark(event.start_mark)

    def _set_odd_key(self, event: Event, data: dict[Any, Any], key: Any, kind: str) -> None:
        if kind != MERGE:
            self._find_no_key(event, str(key))
            return
        self._key = _MERGE_KEY
        if id(data) in self._merges:
            self._find(event, 'duplicate key "<<"', "merge a list: <<: [*a, *b]")

    def _find_no_key(self, event: Event, found: str) -> None:
        named = "" if self._in_secrets() else f", not {_shown(found)}"
        self._find(event, f"a key must be a string{named}", "quote it")

    def _find_duplicate(self, event: Event, data: dict[Any, Any]) -> None:
        self._count(event, 2, 0)
        if len(self._result.findings) >= MAX_FINDINGS:
            self._result.more += 1
            return
        if not self._keep_marks:
            raise _MarksNeededError
        line, _ = self._marks[id(data)][self._key][0]
        named = "" if self._in_secrets() else f' "{_shown(self._key)}"'
        hint = f"it stands first at line {line}; remove one"
        self._find(event, f"duplicate key{named}", hint)

    def _in_secrets(self) -> bool:
        """Whether a key may be a secret here, which somebody wrote in the place of a key."""
        return any(outer.key in _SECRETS for outer in self._outer)

    def _alias(self, event: AliasEvent) -> None:
        if event.anchor not in self._anchors:
            hint = "quote a value that starts with *"
            self._stop(event, f"{NOT_YAML}found undefined alias", hint)
        anchored = self._anchors[event.anchor]
        depth = len(self._outer) + (anchored.height if anchored else MAX_DEPTH)
        if anchored is None or depth > MAX_DEPTH:
            hint = "an alias (*name) inside its own anchor (&name) never ends"
            self._stop(event, _TOO_DEEP, hint)
        self._deepest = max(self._deepest, depth)
        self._count(event, anchored.values - 1, anchored.characters)
        if self._key is _NO_KEY:
            is_text = isinstance(anchored.data, str)
            self._set_key(event, anchored.data, TEXT if is_text else "alias")
        else:
            self._add(anchored.data, event, anchored.mark)

    def _start_mapping(self, event: MappingStartEvent) -> None:
        self._start(event, "map", {}, _NO_KEY)

    def _start_sequence(self, event: SequenceStartEvent) -> None:
        self._start(event, "seq", [], None)

    def _start(self, event: Any, kind: str, data: dict[Any, Any] | list[Any], key: Any) -> None:
        if event.tag not in (None, "!", PREFIX + kind):
            self._find(event, "a tag is not allowed", _QUOTE_TAG)
        if self._key is _NO_KEY:
            self._find_no_key(event, "a list or mapping")
        self._outer.append(
            _Outer(
                self._data,
                self._key,
                self._key_mark,
                event,
                self._values,
                self._characters,
                self._deepest,
            )
        )
        self._deepest = len(self._outer)
        if self._deepest > MAX_DEPTH:
            self._stop(event, _TOO_DEEP)
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        if self._values > self._bounds.values:
            self._count(event, 0, 0)
        self._data, self._key = data, key

    def _end_mapping(self, event: MappingEndEvent) -> None:
        data = self._data
        sources = self._merges.pop(id(data), None) if self._merges else None
        if sources is not None:
            self._merge(data, sources)
            if len(data) > self._entries:
                self._stop_at_entries("mapping")
        self._values += len(data)
        self._end_collection(event)

    def _merge(self, data: dict[Any, Any], sources: list[dict[Any, Any]]) -> None:
        """The first of the sources that has a key goes before the others, and `data` before all."""
        own = dict(data)
        data.clear()
        for source in (*reversed(sources), own):
            data.update(source)
        if self._keep_marks:
            marks: dict[str | int, tuple[Mark, Mark]] = {}
            for source in (*reversed(sources), data):
                marks.update(self._marks.get(id(source), {}))
            self._marks[id(data)] = marks

    def _end_collection(self, event: MappingEndEvent | SequenceEndEvent) -> None:
        value = self._data
        outer = self._outer.pop()
        start: Any = outer.start
        self._values += len(value)
        if start.anchor is not None:
            written = event.end_mark.index - start.start_mark.index
            self._anchors[start.anchor] = _Anchored(
                value,
                _mark(start.start_mark),
                self._values - outer.values + 1,
                self._characters - outer.characters + written,
                self._deepest - len(self._outer),
            )
        self._deepest = max(self._deepest, outer.deepest)
        self._data, self._key, self._key_mark = outer.data, outer.key, outer.key_mark
        if self._key is _NO_KEY:
            self._key = object()
        else:
            self._add(value, start)

    def _add(self, value: Any, event: Any, mark: Mark | None = None) -> None:
        """Put a value where the next one goes: it began with `event`, or at `mark`."""
        data, key = self._data, self._key
        if key is None:
            if data is None:
                self._root, self._root_mark = value, mark or _mark(event.start_mark)
                return
            key = len(data)
            if key >= self._entries:
                self._stop_at_entries("list")
            data.append(value)
        elif key is _MERGE_KEY:
            self._key = _NO_KEY
            self._add_sources(value, mark or _mark(event.start_mark))
            return
        else:
            data[key] = value
            self._key = _NO_KEY
        if self._keep_marks:
            mark = mark or _mark(event.start_mark)
            key_mark = mark if self._key is None else self._key_mark
            self._marks.setdefault(id(data), {})[key] = (key_mark, mark)

    def _add_sources(self, value: Any, mark: Mark) -> None:
        sources = value if isinstance(value, list) else [value]
        if all(isinstance(source, dict) for source in sources):
            self._merges.setdefault(id(self._data), []).extend(sources)
        else:
            message = f"{NOT_YAML}what is merged must be a mapping, or a list of mappings"
            self._keep(Finding(mark, message))

    def _count(self, event: Event, values: int, characters: int) -> None:
        self._values += values
        self._characters += characters
        bounds = self._bounds
        if self._values > bounds.values or self._characters > bounds.characters:
            too_many = self._values > bounds.values
            most = f"{bounds.values:,} values" if too_many else f"{bounds.characters:,} characters"
            hint = "each alias (*name) counts as what it stands for" if self._anchors else _SPLIT
            self._stop(event, f"the file grows to more than {most}", hint)

    def _stop_at_entries(self, what: str) -> NoReturn:
        message = f"this {what} has more than {self._bounds.entries:,} entries"
        self._find(self._outer[-1].start, message, "")
        raise _TooMuchError

    def _stop(self, event: Event, message: str, hint: str = "") -> NoReturn:
        self._find(event, message, hint)
        raise _TooMuchError

    def _find(self, event: Event, message: str, hint: str) -> None:
        self._keep(Finding(_mark(event.start_mark), message, hint))

    def _keep(self, finding: Finding) -> None:
        if len(self._result.findings) < MAX_FINDINGS:
            self._result.findings.append(finding)
        else:
            self._result.more += 1


_TOO_DEEP = f"nested more than {MAX_DEPTH} levels deep"


def _named_type(tag: str) -> str:
    kind = tag.removeprefix(PREFIX)
    return TEXT if kind == TEXT else kind


def _shown(text: str) -> str:
    """What a message can hold of a key."""
    words = json.dumps(text[:_SHOWN], ensure_ascii=False)[1:-1]
    return words if len(text) <= _SHOWN else f"{words}…"


def _mark(mark: Any) -> Mark:
    return mark.line + 1, mark.column + 1
