"""Read YAML safely, and keep the place of every value so that an error can point at it.

The C parser composes a node tree; the checks walk that tree (aliases, depth, duplicate keys,
dates, foreign tags) before anything is built from it.
"""

import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import CollectionEndEvent, CollectionStartEvent
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from engine.api.yaml_checks import MAX_DEPTH, TAG, TOO_DEEP, check_tree, place_of
from engine.api.yaml_parser import compose_all, compose_all_pure_python, construct
from engine.errors import Diagnostic, SourceLocation

MAX_BYTES = 1024 * 1024
_SURELY_FLAT = 2_000

_HINTS = {
    "found character that cannot start any token": (
        "indent with spaces: YAML allows no tabs; and quote values that start with @ or `"
    ),
    "found a tab character that violates indentation": "indent with spaces: YAML allows no tabs",
    "mapping values are not allowed in this context": "quote a value that contains ': '",
    "found undefined alias": "quote a value that starts with *",
}
_COLON_IN_FLOW = "found unexpected ':'"

Path = tuple[str | int, ...]
"""The keys and indexes that lead to a value from the top of its document."""


@dataclass(frozen=True, slots=True)
class Document:
    """One YAML document: its data, and where in which text it stands.

    A node tree knows the places, and is ten times as large as the data: it is made anew when
    something is to be found.
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
    number: int
    """How many documents stand before this one in the file."""
    moves: Mapping[Path, Path] = field(default_factory=dict)
    """Path in `data` -> path in `written`, where conversion moved a value."""

    def locate(self, path: Sequence[str | int], *, key: bool = False) -> SourceLocation:
        """Place of the value at `path` in `data`, or of its key; the nearest parent that exists
        otherwise.
        """
        node = at = _trees(self.text)[self.number]
        for step in self.written_path(path):
            found = _child(node, step)
            if found is None:
                break
            key_node, node = found
            at = key_node if key and key_node is not None else node
        return place_of(self.file, at)

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
    try:
        too_deep = _nesting_violation(decoded)
        if too_deep is not None:
            return _refused(SourceLocation(file, *too_deep), TOO_DEEP)
        nodes = _compose(decoded)
    except (YAMLError, RecursionError) as error:
        return _unreadable(error, decoded, file)
    documents: list[Document] = []
    problems: list[Diagnostic] = []
    for number, node in enumerate(nodes):
        if _is_empty(node):
            continue
        found = [*check_tree(node, file)]
        if not found:
            try:
                data = construct(node)
                documents.append(Document(file, data, data, place_of(file, node), decoded, number))
            except (MarkedYAMLError, ValueError, LookupError) as error:
                found.append(_not_constructed(error, node, file))
        problems.extend(found)
    return YamlDocuments((), tuple(problems)) if problems else YamlDocuments(tuple(documents))


def _refused(where: SourceLocation, message: str, hint: str = "") -> YamlDocuments:
    return YamlDocuments(problems=(Diagnostic(where, message, hint),))


def _unreadable(error: Exception, text: str, file: str) -> YamlDocuments:
    if isinstance(error, MarkedYAMLError) and error.problem_mark is not None:
        message = str(error.problem)
        mark = error.problem_mark
        context = f", {error.context}" if error.context else ""
        hint = _HINTS.get(message, "")
        return _refused(
            SourceLocation(file, mark.line + 1, mark.column + 1),
            f"not valid YAML: {message}{context}",
            hint,
        )
    position = getattr(error, "position", None)
    if isinstance(position, int):
        before = text[:position]
        where = SourceLocation(file, before.count("\n") + 1, position - before.rfind("\n"))
        return _refused(
            where, f"not valid YAML: {getattr(error, 'reason', 'unreadable character')}"
        )
    return _refused(SourceLocation(file), "not valid YAML: nested too deeply")


def _compose(text: str) -> list[Node]:
    """Node trees of the documents.

    The C parser refuses `{image: redis:7}`, as YAML 1.1 did; 1.2 allows it, and so does the
    slower parser, which is asked then.
    """
    try:
        return compose_all(text)
    except MarkedYAMLError as error:
        if error.problem != _COLON_IN_FLOW:
            raise
    return compose_all_pure_python(text)


@lru_cache(maxsize=1)
def _trees(text: str) -> list[Node]:
    """The same trees as when the text was read, kept for the next question about it."""
    return _compose(text)


def _nesting_violation(text: str) -> tuple[int, int] | None:
    """(line, column) of what is nested too deeply.

    Composing is recursive C code: enough levels end the process, not the call. A text with few
    brackets and dashes can't be that deep, so that most are read only once.
    """
    if sum(map(text.count, "[{-?")) < _SURELY_FLAT:
        return None
    depth = 0
    _, parser = YAML(typ="safe").get_constructor_parser(io.StringIO(text))
    while _has_event(parser):
        event = parser.get_event()
        if isinstance(event, CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                return event.start_mark.line + 1, event.start_mark.column + 1
        elif isinstance(event, CollectionEndEvent):
            depth -= 1
    return None


def _has_event(parser: Any) -> bool:
    try:
        return bool(parser.check_event())
    except MarkedYAMLError:
        return False


def _not_constructed(error: Exception, root: Node, file: str) -> Diagnostic:
    """A value is not what its tag says: `!!int abc`, or more digits than Python takes."""
    if isinstance(error, MarkedYAMLError) and error.problem_mark is not None:
        mark = error.problem_mark
        return Diagnostic(
            SourceLocation(file, mark.line + 1, mark.column + 1), f"not valid YAML: {error.problem}"
        )
    node = next(filter(_is_unreadable, _scalars(root)), root)
    kind = node.tag.removeprefix(TAG)
    return Diagnostic(
        place_of(file, node), f"this is no readable {kind}", "quote it to keep it as text"
    )


def _scalars(root: Node) -> Iterator[ScalarNode]:
    stack = [root]
    while stack:
        node = stack.pop()
        if isinstance(node, ScalarNode):
            yield node
        elif isinstance(node, MappingNode):
            stack.extend(value for _, value in reversed(node.value))
        else:
            stack.extend(reversed(node.value))


def _is_unreadable(node: ScalarNode) -> bool:
    try:
        construct(node)
    except (ValueError, LookupError):
        return True
    return False


def _is_empty(node: Node) -> bool:
    return isinstance(node, ScalarNode) and node.tag == TAG + "null" and node.value == ""


def _child(node: Node, step: str | int) -> tuple[Node | None, Node] | None:
    if isinstance(node, MappingNode):
        for key, value in node.value:
            if key.value == step:
                return key, value
        for key, value in node.value:
            if key.tag == TAG + "merge":
                merged = value.value if isinstance(value, SequenceNode) else [value]
                for source in merged:
                    found = _child(source, step)
                    if found is not None:
                        return found
    elif isinstance(node, SequenceNode) and isinstance(step, int) and step < len(node.value):
        return None, node.value[step]
    return None
