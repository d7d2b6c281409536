"""Effective specs with the origin of each value: as comments of YAML, or as JSON."""

import re
from collections.abc import Sequence
from typing import Any

import click

from engine.api.origins import EffectiveDocument, Origin
from engine.api.schema_messages import dotted
from engine.api.versions import JOB_SPEC
from engine.api.yaml_reader import Document
from engine.cli.output import sanitize_line, to_json
from engine.cli.printers.manifests import to_yaml
from engine.errors import SourceLocation

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
                {
                    "field": dotted(path),
                    "value": document.value_at(path),
                    "origin": _origin_data(origin),
                }
                for path, origin in document.origins.items()
            ],
        }
        for document in documents
    ]
    click.echo(to_json({"jobs": jobs}, indent=2))


def _with_comments(document: EffectiveDocument) -> list[str]:
    text = to_yaml([document.data])
    lines = text.rstrip("\n").split("\n")
    readable = _SURROGATE.sub(r"\1\\uE0", text)
    written = Document("", document.data, SourceLocation(""), readable, 0)
    for path, origin in document.origins.items():
        line = written.locate(path, key=True).line
        lines[line - 1] += f"  # {sanitize_line(_words(origin))}"
    return lines


def _words(origin: Origin) -> str:
    words = str(origin.where or origin.writer)
    note = origin.rule or (origin.writer if origin.where else "")
    return f"{words} ({note})" if note and note != JOB_SPEC else words


def _origin_data(origin: Origin) -> dict[str, Any]:
    where = origin.where
    return {
        "kind": origin.writer,
        "file": where and where.file,
        "line": where and where.line,
        "column": where and where.column,
        "rule": origin.rule or None,
    }
