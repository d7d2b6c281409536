"""Effective specs as YAML, with the origin of each value as a comment."""

import re
from collections.abc import Sequence

import click

from engine.api.origins import EffectiveDocument, Origin
from engine.api.versions import JOB_SPEC
from engine.api.yaml_reader import Document
from engine.cli.output import sanitize_line
from engine.cli.printers.manifests import to_yaml
from engine.errors import SourceLocation

_SURROGATE = re.compile(r"(?<!\\)((?:\\\\)*)\\uD[89A-F]")
"""Half a character, which an argument of the command line can hold, and no text that is read."""


def print_origins(documents: Sequence[EffectiveDocument]) -> None:
    """Each as a spec in YAML, with a comment behind every value."""
    for document in documents:
        click.echo("\n".join(_with_comments(document)))


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
