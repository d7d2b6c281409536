"""What a YAML tree may not hold: too much, too deep, twice, or what isn't plain data."""

import json
import math
from collections.abc import Iterator

from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from engine.api.yaml_parser import is_text
from engine.errors import Diagnostic, SourceLocation

MAX_DEPTH = 64
MAX_NODES = 100_000
TOO_DEEP = f"nested more than {MAX_DEPTH} levels deep"
TAG = "tag:yaml.org,2002:"

_PLAIN_TAGS = frozenset(
    TAG + name for name in ("map", "seq", "str", "int", "float", "bool", "null", "merge")
)


def check_tree(root: Node, file: str) -> Iterator[Diagnostic]:
    """Walk every node as often as it is reached, so that aliases cost what they expand to."""
    count = 0
    stack: list[tuple[Node, int]] = [(root, 1)]
    seen: set[int] = set()
    while stack:
        node, depth = stack.pop()
        count += 1
        if count > MAX_NODES:
            yield Diagnostic(
                place_of(file, root),
                f"the document grows to more than {MAX_NODES:,} values",
                "use fewer aliases (*name): each one counts as what it stands for",
            )
            return
        if depth > MAX_DEPTH:
            yield Diagnostic(
                place_of(file, node),
                TOO_DEEP,
                "an alias (*name) inside its own anchor (&name) never ends",
            )
            return
        if is_text(node):
            continue
        if id(node) not in seen:
            seen.add(id(node))
            yield from _check_node(node, file)
        if isinstance(node, MappingNode):
            stack.extend((value, depth + 1) for _, value in reversed(node.value))
        elif isinstance(node, SequenceNode):
            stack.extend((value, depth + 1) for value in reversed(node.value))


def _check_node(node: Node, file: str) -> Iterator[Diagnostic]:
    if node.tag == TAG + "timestamp":
        yield Diagnostic(
            place_of(file, node),
            "an unquoted date or time",
            "quote it to keep it as text",
        )
    elif node.tag not in _PLAIN_TAGS:
        yield Diagnostic(
            place_of(file, node), "a tag is not allowed", "quote a value that starts with !"
        )
    elif node.tag == TAG + "float" and not math.isfinite(_float(node.value)):
        yield Diagnostic(
            place_of(file, node), "this is not a finite number", "quote it to keep it as text"
        )
    if isinstance(node, MappingNode):
        yield from _check_keys(node, file)


def _check_keys(node: MappingNode, file: str) -> Iterator[Diagnostic]:
    first: dict[str, Node] = {}
    for key, _ in node.value:
        if not is_text(key) and key.tag == TAG + "merge":
            continue
        if not is_text(key) and (not isinstance(key, ScalarNode) or key.tag != TAG + "str"):
            text = key.value if isinstance(key, ScalarNode) else "a list or mapping"
            yield Diagnostic(place_of(file, key), f"a key must be a string, not {text}", "quote it")
            continue
        if key.value in first:
            before = place_of(file, first[key.value])
            yield Diagnostic(
                place_of(file, key),
                f"duplicate key {json.dumps(key.value, ensure_ascii=False)}",
                f"it stands first at line {before.line}; remove one",
            )
        first.setdefault(key.value, key)


def _float(text: str) -> float:
    try:
        return float(text.replace("_", ""))
    except ValueError:
        return math.inf


def place_of(file: str, node: Node) -> SourceLocation:
    """Where a node begins."""
    mark = node.start_mark
    return SourceLocation(file, mark.line + 1, mark.column + 1)
