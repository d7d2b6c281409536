"""The C parser of ruamel.yaml, asked for node trees alone.

Of what `YAML(typ="safe")` takes for a small file, three quarters are a new class for each text and
the search for the tag of every plain value. Here is one class, and it remembers tags.
"""

from functools import lru_cache
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.constructor import SafeConstructor
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode
from ruamel.yaml.resolver import Resolver
from ruamel.yaml.tag import Tag

try:
    from _ruamel_yaml import CParser  # type: ignore[import-not-found]
except ImportError:  # no build for this platform: the same results, ten times slower
    CParser = None

_REMEMBERED = 64
"""Longest value whose tag is kept."""

_TEXT: Tag = Resolver.DEFAULT_SCALAR_TAG
_SEQUENCE: Tag = Resolver.DEFAULT_SEQUENCE_TAG
_MAPPING: Tag = Resolver.DEFAULT_MAPPING_TAG


def compose_all(text: str) -> list[Node]:
    """Node trees of the documents. Errors: those of ruamel.yaml."""
    if CParser is None:
        return compose_all_pure_python(text)
    parser = _Parser(text)
    nodes = []
    try:
        while parser.check_node():
            nodes.append(parser.get_node())
    finally:
        parser.dispose()
    return nodes


def compose_all_pure_python(text: str) -> list[Node]:
    """The same by the parser in Python, which knows all of YAML 1.2."""
    return list(YAML(typ="safe", pure=True).compose_all(text))


def construct(node: Node) -> Any:
    """Plain data of a node tree. Errors: those of ruamel.yaml, and ValueError and LookupError."""
    try:
        return _plain(node, {})
    except _NotPlainError:
        return _Constructor().construct_document(node)


def is_text(node: Node) -> bool:
    """Whether a value is text without a tag of its own: most are, and it costs next to nothing."""
    return node.ctag is _TEXT


class _NotPlainError(Exception):
    """The whole is to be left to ruamel's own constructor: merges, and keys that are no texts."""


def _plain(node: Node, made: dict[int, Any]) -> Any:
    """What an alias stands for is made once."""
    tag = node.ctag
    if tag is _TEXT:
        return node.value
    if id(node) in made:
        return made[id(node)]
    if tag is _MAPPING:
        found: Any = {}
        made[id(node)] = found
        for key, value in node.value:
            if key.ctag is not _TEXT or key.value in found:
                raise _NotPlainError
            found[key.value] = _plain(value, made)
    elif tag is _SEQUENCE:
        found = []
        made[id(node)] = found
        found.extend(_plain(item, made) for item in node.value)
    elif isinstance(node, ScalarNode):
        found = _Constructor().construct_object(node)
    else:
        raise _NotPlainError
    return found


class _Rules:
    """Numbers are read by the rules of YAML 1.2."""

    processing_version = (1, 2)


class _Constructor(SafeConstructor):  # type: ignore[misc]
    resolver = _Rules()


@lru_cache(maxsize=4096)
def _tag(value: str) -> Tag:
    """What YAML 1.2 takes a plain value for."""
    for tag, pattern in Resolver.yaml_implicit_resolvers.get(value[:1], ()):
        if pattern.match(value):
            return Tag(suffix=tag)
    return _TEXT


if CParser is not None:

    class _Parser(CParser):  # type: ignore[misc]
        """Nodes with their tags; nothing resolves by its path in a document."""

        def resolve(self, kind: type[Node], value: str | None, implicit: Any) -> Tag:
            if kind is ScalarNode:
                if not implicit[0] or value is None:
                    return _TEXT
                return _tag(value) if len(value) <= _REMEMBERED else _tag.__wrapped__(value)
            return _MAPPING if kind is MappingNode else _SEQUENCE

        def descend_resolver(self, parent: Node, index: Any) -> None:
            pass

        def ascend_resolver(self) -> None:
            pass
