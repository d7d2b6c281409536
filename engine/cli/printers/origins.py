"""Effective specs with the origin of each value: as comments of YAML, or as JSON."""

import re
from collections.abc import Sequence
from functools import reduce
from operator import getitem
from typing import Any

import click

from engine.api.origins import EffectiveDocument, Origin, Writer
from engine.api.schema_messages import dotted
from engine.api.yaml_composer import Bounds, compose
from engine.cli.printers.manifests import to_yaml
from engine.cli.printers.text import one_line, to_json

_ANY_SIZE = Bounds(values=2**31, entries=2**31, characters=2**31, nul=True)
_SURROGATE = re.compile(r"(?<!\\)((?:\\\\)*)\\uD[89A-F]")
"""Half a character, which an argument of the command line can hold, and no text that is read."""


def print_origins_yaml(documents: Sequence[EffectiveDocument]) -> None:
    """Each as a spec in YAML, with a comment behind every value."""
    for document in documents:
        click.echo("\n".join(_with_comments(document)))


def print_origins_json(documents: Sequence[EffectiveDocument]) -> None:
    """The values of each as a list."""
    jobs = [
        {
            "name": document.value_at(("metadata", "name")),
            "namespace": document.data["metadata"].get("namespace", ""),
            "values": [
                {"field": dotted(path), **_value(document.value_at(path), origin)}
                for path, origin in document.origins.items()
            ],
        }
        for document in documents
    ]
    click.echo(to_json({"jobs": jobs}, indent=2))


def _with_comments(document: EffectiveDocument) -> list[str]:
    text = to_yaml([document.data])
    lines = text.rstrip("\n").split("\n")
    read = compose(_SURROGATE.sub(r"\1\\uE0", text), _ANY_SIZE, keep_marks=True)
    for (*above, last), origin in document.origins.items():
        holder = reduce(getitem, above, read.documents[0].data)
        (line, _), _ = read.marks[id(holder)][last]
        lines[line - 1] += f"  # {one_line(_words(origin))}"
    return lines


def _words(origin: Origin) -> str:
    words = str(origin.where or origin.writer)
    note = origin.rule or (origin.writer if origin.where else "")
    if note and note != Writer.SPEC:
        words += f" ({note})"
    if origin.before:
        value, before = origin.before
        text = f"[{', '.join(value)}]" if isinstance(value, list) else value
        words += f", not {text} from {_words(before)}"
    return words


def _value(value: Any, origin: Origin) -> dict[str, Any]:
    where = origin.where
    return {
        "value": value,
        "origin": {
            "kind": origin.writer,
            "file": where and where.file,
            "line": where and where.line,
            "column": where and where.column,
            "rule": origin.rule or None,
            "insteadOf": origin.before and _value(*origin.before),
        },
    }
