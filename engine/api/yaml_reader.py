"""Read YAML safely, and find the place of every value so that an error can point at it."""

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from engine.api.yaml_nodes import compose, explain_syntax, require_bounds
from engine.errors import MAX_SHOWN, Diagnostic, SourceLocation

MAX_BYTES = 1024 * 1024

_TAG = "tag:yaml.org,2002:"
_MERGE = _TAG + "merge"
_INT = _TAG + "int"
_TEXTS = {_TAG + "str", _MERGE, _TAG + "value"}
"""YAML 1.1 has a type for a single `=`, which is text to everyone else."""
_QUOTE = "quote it to keep it as text"
_QUOTE_TAG = "quote a value that starts with !"
_SHOWN = 60
_SURROGATE = re.compile("[\ud800-\udfff]")
_SECRETS = {"secrets", "registryCredentials"}
_INT_BOUND = 2**63
"""Kubernetes holds no larger numbers."""
_LONGEST_INT = 100
"""Characters: Python refuses to convert thousands of digits."""
_TOO_LARGE = "this whole number has more than 64 bits"
_PLAIN = re.compile(r"[-+.\w]+")

_CONSTRUCTOR = YAML(typ="safe", pure=True).constructor
_CONSTRUCT = {
    _TAG + "null": _CONSTRUCTOR.construct_yaml_null,
    _TAG + "bool": _CONSTRUCTOR.construct_yaml_bool,
    _INT: _CONSTRUCTOR.construct_yaml_int,
    _TAG + "float": _CONSTRUCTOR.construct_yaml_float,
}

_Entry = tuple[Node, Node]
"""The nodes of a key and of its value."""
Path = tuple[str | int, ...]
"""The keys and indexes that lead to a value from the top of its document."""


@dataclass(frozen=True, slots=True)
class Document:
    """One YAML document: its data, and the text that has it.

    The nodes are many times the size of the data: the text is read again for the place of a value.
    """

    file: str
    """The file's name in messages."""
    data: Any
    place: SourceLocation
    """The beginning of the document."""
    text: str = field(repr=False)
    """All of the file."""
    index: int
    """The number of documents before it in the file."""

    def locate(self, path: Sequence[str | int], *, key: bool = False) -> SourceLocation:
        """Place of the value at `path`, or of its key; else of the nearest parent that exists."""
        read = _read(self.text, self.file)
        node = at = read.documents[self.index][0]
        for step in path:
            if isinstance(node, MappingNode) and step in read.entries[id(node)]:
                key_node, node = read.entries[id(node)][step]
            elif isinstance(node, SequenceNode) and step in range(len(node.value)):
                key_node = node = node.value[step]
            else:
                break
            at = key_node if key else node
        return _place(self.file, at)

    def written_scalar(self, path: Sequence[str | int]) -> str:
        """The plain scalar at `path` as it was written, `1.10` where `data` has 1.1.

        Empty for anything else, such as an alias.
        """
        where = self.locate(path)
        lines = self.text.split("\n", where.line)
        found = _PLAIN.match(lines[where.line - 1], where.column - 1)
        return found[0] if found else ""


@dataclass(frozen=True, slots=True)
class YamlDocuments:
    """The documents of a file, or its problems."""

    documents: tuple[Document, ...] = ()
    """None if there is any problem."""
    problems: tuple[Diagnostic, ...] = ()
    more: int = 0
    """The number of problems that are not listed."""


def read_yaml(text: bytes, file: str) -> YamlDocuments:
    """Documents of `text`; a file with any problem yields none, so that nothing half-read is used.

    Empty documents are left out. Errors are returned as problems, never raised.
    """
    if len(text) > MAX_BYTES:
        message = f"the file is larger than {MAX_BYTES:,} bytes"
        return _refused(SourceLocation(file), message, "split it into several files")
    try:
        decoded = text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = text.count(b"\n", 0, error.start) + 1
        column = error.start - (text.rfind(b"\n", 0, error.start) + 1) + 1
        where = SourceLocation(file, line, column)
        return _refused(where, "this is not UTF-8 text", "save it as UTF-8")
    try:
        require_bounds(decoded)
    except YAMLError as error:
        return _not_yaml(error, decoded, file)
    return read_bounded(decoded, file)


def read_bounded(text: str, file: str) -> YamlDocuments:
    """The same for a text that is known to be within bounds."""
    try:
        read = _read(text, file)
    except YAMLError as error:
        return _not_yaml(error, text, file)
    if read.problems:
        return YamlDocuments(problems=tuple(read.problems), more=read.more)
    return YamlDocuments(
        tuple(
            Document(file, data, _place(file, node), text, index)
            for index, (node, data) in enumerate(read.documents)
            if data is not None
        )
    )


def _refused(where: SourceLocation, message: str, hint: str) -> YamlDocuments:
    return YamlDocuments(problems=(Diagnostic(where, message, hint),))


def _not_yaml(error: YAMLError, text: str, file: str) -> YamlDocuments:
    return YamlDocuments(problems=(explain_syntax(error, text, file),))


@lru_cache(maxsize=8)
def _read(text: str, file: str) -> "_Reader":
    """It is kept for the next question about the text: most are about a spec and its defaults.

    Errors: YAMLError.
    """
    reader = _Reader(file)
    reader.documents = [(node, reader.read(node)) for node in compose(text)]
    return reader


class _Reader:
    """Makes data of the nodes of one text, and collects what a text may not hold."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._made: dict[int, Any] = {}
        """Mappings and lists by the `id()` of their node: an alias is the same object again."""
        self.documents: list[tuple[Node, Any]] = []
        self.entries: dict[int, dict[str, _Entry]] = {}
        """Of each mapping, by the `id()` of its node, with those that are merged into it."""
        self.problems: list[Diagnostic] = []
        self.more = 0

    def read(self, node: Node, *, secret: bool = False) -> Any:
        """Data of `node`. In `secret` a key may be a secret, written in the wrong place."""
        if isinstance(node, ScalarNode):
            return self._scalar(node)
        if id(node) in self._made:
            if self._made[id(node)] is None:
                self._find(node, "an alias (*name) inside its own anchor (&name) never ends")
            return self._made[id(node)]
        self._made[id(node)] = None
        is_mapping = isinstance(node, MappingNode)
        if node.tag != _TAG + ("map" if is_mapping else "seq"):
            self._find(node, "a tag is not allowed", _QUOTE_TAG)
        if is_mapping:
            data: Any = self._mapping(node, secret=secret)
        else:
            data = [self.read(item, secret=secret) for item in node.value]
        self._made[id(node)] = data
        return data

    def _mapping(self, node: MappingNode, *, secret: bool) -> dict[str, Any]:
        data: dict[str, Any] = {}
        entries: dict[str, _Entry] = {}
        merged: list[Node] = []
        for key, value in node.value:
            tag = key.tag
            if tag == _MERGE:
                if merged:
                    self._find(key, 'duplicate key "<<"', "merge a list: <<: [*a, *b]")
                merged += self._merged(value)
                continue
            name = self._key(key, tag, entries, secret=secret)
            item = self.read(value, secret=secret or name in _SECRETS)
            if name is not None:
                data[name] = item
                entries[name] = key, value
        for source in merged:  # the first that has a key goes before the others
            data = {**self._made[id(source)], **data}
            entries = {**self.entries[id(source)], **entries}
        self.entries[id(node)] = entries
        return data

    def _merged(self, value: Node) -> list[Node]:
        """The mappings that are merged into another one."""
        sources = value.value if isinstance(value, SequenceNode) else [value]
        if not all(isinstance(self.read(source), dict) for source in sources):
            self._find(value, "what is merged must be a mapping, or a list of mappings")
            return []
        return [*sources]

    def _key(self, key: Node, tag: str, before: dict[str, "_Entry"], *, secret: bool) -> str | None:
        if tag not in _TEXTS or not isinstance(key, ScalarNode):
            shown = _cut(key.value) if isinstance(key, ScalarNode) else "a list or mapping"
            named = "" if secret else f", not {shown}"
            self._find(key, f"a key must be a string{named}", "quote it")
            return None
        name = self._text(key)
        if name in before:
            first = before[name][0].start_mark.line + 1
            named = "" if secret else f' "{_cut(name)}"'
            hint = f"the first is at line {first}; remove one"
            self._find(key, f"duplicate key{named}", hint)
        return name

    def _scalar(self, node: ScalarNode) -> Any:
        tag = node.tag
        if tag in _TEXTS:
            return self._text(node)
        if tag == _TAG + "timestamp":
            self._find(node, "an unquoted date or time", _QUOTE)
        elif tag not in _CONSTRUCT:
            self._find(node, "a tag is not allowed", _QUOTE_TAG)
        elif tag == _INT and len(node.value) > _LONGEST_INT:
            self._find(node, _TOO_LARGE, _QUOTE)
        else:
            return self._number(node, tag)
        return None

    def _number(self, node: ScalarNode, tag: str) -> Any:
        try:
            value = _CONSTRUCT[tag](node)
        except (ValueError, LookupError):
            self._find(node, f"this is no readable {tag.removeprefix(_TAG)}", _QUOTE)
            return None
        if isinstance(value, int) and not -_INT_BOUND <= value < _INT_BOUND:
            self._find(node, _TOO_LARGE, _QUOTE)
        elif isinstance(value, float) and not math.isfinite(value):
            self._find(node, "this is not a finite number", _QUOTE)
        return value

    def _text(self, node: ScalarNode) -> str:
        text: str = node.value
        if "\0" in text:
            self._find(node, "a NUL character", "no process can be given one")
        if not text.isascii() and _SURROGATE.search(text):
            self._find(node, "half a surrogate pair is no character", "write the character itself")
        return text

    def _find(self, node: Node, message: str, hint: str = "") -> None:
        if len(self.problems) < MAX_SHOWN:
            self.problems.append(Diagnostic(_place(self._file, node), message, hint))
        else:
            self.more += 1


def _place(file: str, node: Node) -> SourceLocation:
    return SourceLocation(file, node.start_mark.line + 1, node.start_mark.column + 1)


def _cut(text: str) -> str:
    words = json.dumps(text[:_SHOWN], ensure_ascii=False)[1:-1]
    return words if len(text) <= _SHOWN else f"{words}…"
