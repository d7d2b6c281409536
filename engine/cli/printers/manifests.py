"""Manifests as a YAML stream or as one JSON List."""

import json
import sys
from collections.abc import Sequence
from typing import Any

import click
from ruamel.yaml import YAML
from ruamel.yaml.scalarstring import LiteralScalarString


def print_yaml(manifests: Sequence[dict[str, Any]]) -> None:
    yaml = YAML()
    yaml.explicit_start = True
    yaml.width = 10_000
    yaml.indent(mapping=2, sequence=4, offset=2)
    for manifest in manifests:
        yaml.dump(_readable(manifest), sys.stdout)


def print_json(manifests: Sequence[dict[str, Any]]) -> None:
    whole = {"apiVersion": "v1", "kind": "List", "items": list(manifests)}
    click.echo(json.dumps(whole, indent=2, ensure_ascii=False))


def _readable(value: Any) -> Any:
    """Texts of several lines as blocks, where a block reads back as exactly the same text."""
    if isinstance(value, dict):
        return {key: _readable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_readable(item) for item in value]
    if isinstance(value, str) and "\n" in value and _fits_a_block(value):
        return LiteralScalarString(value)
    return value


def _fits_a_block(text: str) -> bool:
    lines = text.split("\n")
    plain = all(char.isprintable() or char == "\n" for char in text)
    return plain and not text[0].isspace() and all(line == line.rstrip() for line in lines)
