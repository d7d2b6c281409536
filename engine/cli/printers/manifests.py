"""Manifests as a YAML stream or as one JSON List.

What is printed reads back as exactly the same, also with kubectl, whose YAML 1.1 takes `yes`,
`0777` and `1:30` for no strings: only what is a string to everybody stands without quotes.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from engine.render.yaml_value import to_yaml_value

_PLAIN = re.compile(r"[A-Za-z/](?:[A-Za-z0-9_./@+=-]|[: ](?=[A-Za-z0-9/]))*")
_NO_STRINGS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
_LONGEST_KEY = 1000


def print_yaml(manifests: Sequence[dict[str, Any]]) -> None:
    for manifest in manifests:
        click.echo("\n".join(("---", *_lines(manifest))))


def print_json(manifests: Sequence[dict[str, Any]]) -> None:
    whole = {"apiVersion": "v1", "kind": "List", "items": list(manifests)}
    click.echo(json.dumps(whole, indent=2, ensure_ascii=False))


def _lines(value: Any) -> Iterator[str]:
    """The value in block style, as far as that reads back exactly."""
    if isinstance(value, dict) and value:
        yield from _mapping(value)
    elif isinstance(value, list) and value:
        for item in value:
            first, *rest = _lines(item)
            yield f"- {first}"
            yield from map(_indented, rest)
    elif isinstance(value, str) and "\n" in value and _fits_a_block(value):
        text = value.rstrip("\n")
        ending = len(value) - len(text)
        yield "|" + ("-", "", "+")[min(ending, 2)]
        yield from map(_indented, value.removesuffix("\n").split("\n"))
    else:
        yield _scalar(value)


def _mapping(value: Mapping[str, Any]) -> Iterator[str]:
    for key, item in value.items():
        first, *rest = _lines(item)
        head, nested = _scalar(key), isinstance(item, dict | list) and item
        if len(head) > _LONGEST_KEY:
            yield f"? {head}"
            yield f": {first}"
            yield from map(_indented, rest) if nested else rest
        elif nested:
            yield f"{head}:"
            yield from map(_indented, (first, *rest))
        else:
            yield f"{head}: {first}"
            yield from rest


def _scalar(value: Any) -> str:
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _NO_STRINGS:
        return value
    text = to_yaml_value(value)
    if isinstance(value, float) and "." not in text:
        return text.replace("e", ".0e")
    return text


def _indented(line: str) -> str:
    return f"  {line}" if line else ""


def _fits_a_block(text: str) -> bool:
    lines = text.split("\n")
    plain = all(char.isprintable() or char == "\n" for char in text)
    return plain and not text[0].isspace() and all(line == line.rstrip() for line in lines)
