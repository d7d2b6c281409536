"""Read YAML safely, and find the place of every value so that an error can point at it.

ruamel.yaml's C parser composes by recursion: 32,768 brackets end the process. So data is made of
the parser's events, one by one, and each counts towards the bounds; an alias counts with its whole
value.
"""

import json
import math
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NoReturn, cast

from msgspec import Struct
from ruamel.yaml import YAML, CBaseLoader, events
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import ScalarNode
from ruamel.yaml.reader import ReaderError
from ruamel.yaml.resolver import Resolver

from engine.api.schema_messages import dotted, show
from engine.api.yaml_1_1 import SUSPECT, read_by_kubectl
from engine.errors import Diagnostic, Severity, SourceLocation

MAX_BYTES = 1024 * 1024
MAX_DEPTH = 64
MAX_VALUES = 40_000
"""Keys, values, mappings and lists of one file; each 64 characters of a text are one more."""
MAX_ENTRIES = 1_000
"""Of one mapping or list, and documents of a file."""
NOT_YAML = "not valid YAML: "
"""What the message of a syntax error begins with."""

_SPLIT = "split it into several files"
_QUOTE = "quote it to keep it as text"
_NO_TAG = ("a tag is not allowed", "quote a value that starts with !")
_TOO_LARGE = ("this whole number has more than 64 bits", _QUOTE)
_MEANINGS = {
    "did not find expected node content": (
        "a value is missing here, or a bracket before it is not closed",
        "",
    ),
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
_AT_THE_START = (
    "did not find expected ','",
    "found unexpected end of stream",
    "could not find expected ':'",
)
"""These are reported where the thing begins, not where the parser gave up."""

_OLD_LIBYAML = ("found unexpected ':'", "did not find expected ','", "did not find expected node")
"""The libyaml that ruamel.yaml brings refuses `{image: redis:7}`, `[:80]` and `{name: a?}`."""
_INNER = re.compile(r"""(?<!["'\]}]):(?=\S)|(?<=[^\s\[{,])\?""")
"""A colon or question mark that is part of a value, and neither between a key and its value."""
_HIDDEN = {":": "\U0010fffc", "?": "\U0010fffd"}
"""Characters without a meaning, which an old libyaml reads in their place."""

_TAG = "tag:yaml.org,2002:"
_MERGE = _TAG + "merge"
_TEXTS = {_TAG + "str", _MERGE, _TAG + "value"}
"""YAML 1.1 has a type for a single `=`, which is text to everyone else."""
_SHORT = 64
"""Scalars of so few characters come again and again: keys, kinds, policies."""
_SURROGATE = re.compile("[\ud800-\udfff]")
_SECRETS = {"secrets", "registryCredentials"}
_INT_BOUND = 2**63
"""Kubernetes holds no larger numbers."""
_EXACT = 2.0**53
"""Every smaller whole number is one that a float has exactly."""
_LONGEST_NUMBER = 100
"""Characters: Python refuses to convert thousands of digits."""
_PLAIN = re.compile(r"[-+.\w]+")

_CONSTRUCTOR = YAML(typ="safe", pure=True).constructor
_CONSTRUCT = {
    _TAG + "null": _CONSTRUCTOR.construct_yaml_null,
    _TAG + "bool": _CONSTRUCTOR.construct_yaml_bool,
    _TAG + "int": _CONSTRUCTOR.construct_yaml_int,
    _TAG + "float": _CONSTRUCTOR.construct_yaml_float,
}
_RESOLVER = Resolver()
"""Of YAML 1.2, whatever version a text names."""

Path = tuple[str | int, ...]
"""The keys and indexes that lead to a value from the top of its document."""


class Document(Struct, frozen=True):
    """One YAML document: its data, and the text that has it.

    The places are many times the size of the data: the text is read again for the place of a value.
    """

    file: str
    """The file's name in messages."""
    data: Any
    place: SourceLocation
    """The beginning of the document."""
    text: str
    """All of the file."""
    index: int
    """The number of documents before it in the file; -1 for an object of the cluster."""
    matrix: str = ""
    """The name that is written in it, where its matrix made several jobs of it."""
    mended: bool = False
    """Whether what is wrong was taken out: it makes no job, but is checked like one."""

    def locate(self, path: Sequence[str | int], *, key: bool = False) -> SourceLocation:
        """Place of the value at `path`, or of its key; else of the nearest parent that exists."""
        if self.index < 0:
            return SourceLocation(self.file, field=dotted(path))
        read = _read(self.text, self.file)
        data, place = read.stream.data[self.index], self.place
        for step in path:
            marks = read.places.get(id(data), {}).get(step)
            if marks is None:
                break
            data, place = data[step], _place(self.file, marks[0 if key else 1])
        return place

    def differences(self) -> Iterator[Diagnostic]:
        """Warnings of plain scalars that kubectl would read otherwise, by YAML 1.1."""
        if _is_suspect(self.text):
            for index, event, meant in _read(self.text, self.file).differences:
                if index == self.index:
                    where = _place(self.file, event.start_mark)
                    message = f"kubectl, which reads YAML 1.1, takes {event.value} for {meant}"
                    yield Diagnostic(where, message, "quote it if it is text", Severity.WARNING)

    def written_scalar(self, path: Sequence[str | int]) -> str:
        """The plain scalar at `path` as it was written, `1.10` where `data` has 1.1.

        Empty for anything else, such as an alias.
        """
        if self.index < 0:
            return ""
        where = self.locate(path)
        lines = self.text.split("\n", where.line)
        found = _PLAIN.match(lines[where.line - 1], where.column - 1)
        return found[0] if found else ""


@lru_cache(maxsize=1)
def _is_suspect(text: str) -> bool:
    """Asked once for each document, of the text of them all."""
    return SUSPECT.search(text) is not None


def read_yaml(text: bytes, file: str) -> tuple[tuple[Document, ...], tuple[Diagnostic, ...]]:
    """(documents, problems) of `text`: with any problem there are no documents, so that nothing
    half-read is used.

    Empty documents are left out. Errors are returned as problems, never raised.
    """
    if len(text) > MAX_BYTES:
        message = f"the file is larger than {MAX_BYTES:,} bytes"
        return (), (Diagnostic(SourceLocation(file), message, _SPLIT),)
    try:
        decoded = text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = text.count(b"\n", 0, error.start) + 1
        where = SourceLocation(file, line, error.start - text.rfind(b"\n", 0, error.start))
        return (), (Diagnostic(where, "this is not UTF-8 text", "save it as UTF-8"),)
    try:
        read = _read(decoded, file)
    except _RefusedError as error:
        return (), error.args
    except YAMLError as error:
        return (), (_explain_syntax(error, decoded, file),)
    if read.problems:
        return (), tuple(read.problems)
    documents = []
    for index, data in enumerate(read.stream.data):
        if data is not None:
            where = _place(file, read.stream.places[index][0])
            documents.append(Document(file, data, where, decoded, index))
    return tuple(documents), ()


def read_object(text: bytes, file: str) -> tuple[tuple[Document, ...], tuple[Diagnostic, ...]]:
    """The same of an object of the cluster: one document, in the API server's own JSON."""
    return (Document(file, json.loads(text), SourceLocation(file), "", -1),), ()


@lru_cache(maxsize=8)
def _read(text: str, file: str) -> "_Reader":
    """It is kept for the next question about the text: most are about a spec and its defaults.

    Errors: YAMLError, _RefusedError.
    """
    try:
        return _Reader(file, text)
    except MarkedYAMLError as error:
        is_known = str(error.problem).startswith(_OLD_LIBYAML)
        if not is_known or any(hidden in text for hidden in _HIDDEN.values()):
            raise
    return _Reader(file, _INNER.sub(lambda found: _HIDDEN[found[0]], text), hides=True)


class _RefusedError(Exception):
    """A text goes beyond a bound: its one argument is the problem."""


class _Collection(Struct):
    """A mapping or list, or what else has an anchor."""

    start: Any
    data: Any
    secret: bool = False
    """Whether its keys may be secrets, written in the wrong place."""
    size: int = 0
    """As aliases of it count; until it is complete, what was counted before it."""
    height: int = 0
    """Levels of mappings and lists in it, itself not counted."""
    places: dict[str | int, tuple[Any, Any]] = {}
    """The marks of each key and value."""
    key: Any = None
    """The event of the key whose value is next."""
    name: str | None = None
    """That key; None if it can be none."""
    merged: list[dict[str, Any]] = []


def _events(text: str) -> Iterator[Any]:
    """As `YAML(typ="safe").parse` has them, which makes a class for each text: 25 KiB until the
    garbage collector runs. A loader refers to itself, too. Errors: YAMLError.
    """
    loader = CBaseLoader(text)
    try:
        while loader.check_event():
            yield loader.get_event()
    finally:
        loader.dispose()
        vars(loader).clear()


class _Reader:
    """Makes data of the events of one text, and collects what a text may not hold."""

    def __init__(self, file: str, text: str, *, hides: bool = False) -> None:
        self._file = file
        self._hides = hides
        self._size = 0
        self._anchored: dict[str, _Collection | None] = {}
        """What each anchor is the name of; None as long as that isn't complete."""
        self.stream = _Collection(None, [])
        """Its entries are the documents."""
        self._open = [self.stream]
        self.places: dict[int, dict[str | int, tuple[Any, Any]]] = {}
        """Of each mapping and list, by its `id()`."""
        self.problems: list[Diagnostic] = []
        self.differences: list[tuple[int, Any, str]] = []
        """(index of the document, event, what kubectl makes of it) of scalars."""
        for event in _events(text):
            if isinstance(event, events.ScalarEvent):
                self._put(event, self._scalar(event))
            elif isinstance(event, events.CollectionStartEvent):
                self._begin(event)
            elif isinstance(event, events.CollectionEndEvent):
                self._end(self._open.pop())
            elif isinstance(event, events.AliasEvent):
                self._alias(event)
            elif isinstance(event, events.DocumentStartEvent):
                self._anchored.clear()

    def _begin(self, event: Any) -> None:
        is_mapping = isinstance(event, events.MappingStartEvent)
        if event.tag not in (None, "!", _TAG + ("map" if is_mapping else "seq")):
            self._find(event, *_NO_TAG)
        holder = self._open[-1]
        is_secret = holder.secret or holder.name in _SECRETS
        self._open.append(_Collection(event, {} if is_mapping else [], is_secret, self._size))
        self._grow(event, 1, 0)
        if event.anchor:
            self._anchored[event.anchor] = None

    def _end(self, done: _Collection) -> None:
        for source in done.merged:  # the first that has a key goes before the others
            done.data = {**source, **done.data}
            done.places = {**self.places[id(source)], **done.places}
        self.places[id(done.data)] = done.places
        done.size = self._size - done.size
        if done.start.anchor:
            self._anchored[done.start.anchor] = done
        self._open[-1].height = max(self._open[-1].height, done.height + 1)
        self._put(done.start, done.data)

    def _alias(self, event: Any) -> None:
        if event.anchor not in self._anchored:
            hint = "quote a value that starts with *"
            self._refuse(event, f"{NOT_YAML}found undefined alias", hint)
        known = self._anchored[event.anchor]
        if known is None:
            self._refuse(event, "an alias (*name) inside its own anchor (&name) never ends")
        self._open[-1].height = max(self._open[-1].height, known.height + 1)
        self._grow(event, known.size, known.height + 1)
        self._put(event, known.data)

    def _grow(self, event: Any, size: int, height: int) -> None:
        self._size += size
        if self._size > MAX_VALUES:
            hint = "each alias (*name) counts with its whole value" if self._anchored else _SPLIT
            self._refuse(event, f"the file grows to more than {MAX_VALUES:,} values", hint)
        if len(self._open) + height > MAX_DEPTH + 1:
            self._refuse(event, f"nested more than {MAX_DEPTH} levels deep")

    def _put(self, event: Any, value: Any) -> None:
        """A value is complete: into the list that is open, or as a key or value of the mapping."""
        holder = self._open[-1]
        if isinstance(holder.data, list):
            holder.places[len(holder.data)] = event.start_mark, event.start_mark
            holder.data.append(value)
        elif holder.key is None:
            holder.key, holder.name = event, self._key(holder, event, value)
            return
        elif holder.name == _MERGE:
            self._merge(holder, event, value)
        elif holder.name is not None:
            holder.places[holder.name] = holder.key.start_mark, event.start_mark
            holder.data[holder.name] = value
        holder.key = holder.name = None
        if len(holder.data) > MAX_ENTRIES:
            what = "list" if isinstance(holder.data, list) else "mapping"
            what = "file" if holder is self.stream else what
            message = f"this {what} has more than {MAX_ENTRIES:,} entries"
            self._refuse(holder.start or event, message)

    def _key(self, holder: _Collection, event: Any, name: Any) -> str | None:
        if not isinstance(name, str):
            is_scalar = isinstance(event, events.ScalarEvent)
            shown = show(event.value)[1:-1] if is_scalar else "a list or mapping"
            named = "" if holder.secret else f", not {shown}"
            self._find(event, f"a key must be a string{named}", "quote it")
            return None
        if name == _MERGE and holder.merged:
            self._find(event, 'duplicate key "<<"', "merge a list: <<: [*a, *b]")
        if name == "apiVersion" and name in holder.data and self._open[0] is self._open[-2]:
            self._refuse(event, 'a second "apiVersion" in one document', "is --- missing above it?")
        if name in holder.data:
            named = "" if holder.secret else f" {show(name)}"
            hint = f"the first is at line {holder.places[name][0].line + 1}; remove one"
            self._find(event, f"duplicate key{named}", hint)
        return name

    def _merge(self, holder: _Collection, event: Any, value: Any) -> None:
        sources = value if isinstance(value, list) else [value]
        if all(isinstance(source, dict) for source in sources):
            holder.merged += sources
        else:
            self._find(event, "what is merged must be a mapping, or a list of mappings")

    def _scalar(self, event: Any) -> Any:
        """The value of a scalar; of a key that is no text, None."""
        text = event.value
        self._grow(event, 1 + len(text) // _SHORT, 0)
        for character, hidden in _HIDDEN.items() if self._hides else ():
            text = text.replace(hidden, character)
        value: Any = text
        found: tuple[str, ...] = ()
        if event.implicit[0] and (meant := read_by_kubectl(text)):
            self.differences.append((len(self.stream.data), event, meant))
        if event.implicit[0] or event.tag:
            read = _plain if len(text) < _SHORT else _plain.__wrapped__
            tag, value, found = read(text, event.tag or "")
            if isinstance(self._open[-1].data, dict) and self._open[-1].key is None:
                value, found = text if tag in _TEXTS else None, ()
                value = _MERGE if tag == _MERGE else value
        if "\0" in text:
            found = ("a NUL character", "no process can be given one")
        elif not text.isascii() and _SURROGATE.search(text):
            found = ("half a surrogate pair is no character", "write the character itself")
        if found:
            self._find(event, *found)
        if event.anchor:
            size = 1 + len(text) // _SHORT
            self._anchored[event.anchor] = _Collection(event, value, size=size, height=-1)
        return value

    def _find(self, event: Any, message: str, hint: str = "") -> None:
        self.problems.append(Diagnostic(_place(self._file, event.start_mark), message, hint))

    def _refuse(self, event: Any, message: str, hint: str = "") -> NoReturn:
        raise _RefusedError(Diagnostic(_place(self._file, event.start_mark), message, hint))


def read_number(text: str) -> int | float:
    """A number as YAML has it. Errors: ValueError for one that 64 bits can't hold."""
    _, value, found = _plain(text, "")
    if found:
        raise ValueError(found[0])
    return cast("int | float", value)


@lru_cache(maxsize=1024)
def _plain(text: str, tag: str) -> tuple[str, Any, tuple[str, ...]]:
    """(tag, value, problem and hint) of a scalar with a tag or without quotes."""
    if tag in ("", "!"):
        tag = str(_RESOLVER.resolve(ScalarNode, text, (True, False)))
    if tag in _TEXTS:
        return tag, text, ()
    if tag == _TAG + "timestamp":
        return tag, None, ("an unquoted date or time", _QUOTE)
    if tag not in _CONSTRUCT:
        return tag, None, _NO_TAG
    if len(text) > _LONGEST_NUMBER:
        return tag, None, _TOO_LARGE
    try:
        value = _CONSTRUCT[tag](ScalarNode(tag, text))
    except (ValueError, LookupError):
        return tag, None, (f"this is no readable {tag.removeprefix(_TAG)}", _QUOTE)
    if isinstance(value, float) and not math.isfinite(value):
        return tag, None, ("this is not a finite number", _QUOTE)
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
        value = int(value)  # as the API server reads it
    if isinstance(value, int) and not -_INT_BOUND <= value < _INT_BOUND:
        return tag, None, _TOO_LARGE
    return tag, value, ()


def _explain_syntax(error: YAMLError, text: str, file: str) -> Diagnostic:
    """The error of a text, in the parser's own words where there are no plainer ones."""
    if isinstance(error, ReaderError):
        before = text[: max(text.find(chr(error.character)), 0)]
        column = len(before) - before.rfind("\n")
        where = SourceLocation(file, before.count("\n") + 1, column)
        return Diagnostic(where, f"{NOT_YAML}{error.reason}")
    problem, mark = str(error.problem), error.problem_mark
    if problem.startswith(_AT_THE_START):
        mark = error.context_mark or mark
    for complaint, (message, hint) in _MEANINGS.items():
        if problem.startswith(complaint):
            return Diagnostic(_place(file, mark), NOT_YAML + message, hint)
    context = f", {error.context}" if error.context else ""
    return Diagnostic(_place(file, mark), f"{NOT_YAML}{problem}{context}")


def _place(file: str, mark: Any) -> SourceLocation:
    return SourceLocation(file, mark.line + 1, mark.column + 1)
