"""Manifests as a YAML stream or as one JSON List.

The output reads back as exactly the same values, also with kubectl, whose YAML 1.1 takes `yes`,
`0777` and `1:30` for no strings. So only a string that every reader takes for one has no quotes.
"""

import io
import json
import re
from collections.abc import Sequence
from typing import Any

import click
from ruamel.yaml import YAML
from ruamel.yaml.nodes import ScalarNode
from ruamel.yaml.representer import SafeRepresenter

from engine.cli.output import escape, is_ci_command, to_json
from engine.status.outcome import Masked

_PLAIN = re.compile(r"[A-Za-z/](?:[A-Za-z0-9_./@+=-]|[: ](?=[A-Za-z0-9/]))*")
_NO_STRINGS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
_NEVER_FOLDED = 2**31


def print_yaml(manifests: Sequence[dict[str, Any]]) -> None:
    """Each manifest as a YAML document in block style."""
    click.echo(to_yaml(manifests), nl=False)


def to_yaml(manifests: Sequence[dict[str, Any]]) -> str:
    """The text of that."""
    yaml = YAML(typ="safe", pure=True)
    yaml.Representer = _Representer
    yaml.default_flow_style = False
    yaml.sort_base_mapping_type_on_output = False
    yaml.explicit_start = True
    yaml.width = _NEVER_FOLDED
    yaml.indent(mapping=2, sequence=4, offset=2)
    text = io.StringIO()
    yaml.dump_all(manifests, text)
    return escape(text.getvalue(), lambda char: f"\\U{ord(char):08x}")


def print_json(manifests: Sequence[dict[str, Any]]) -> None:
    """The manifests as one List, as kubectl prints several objects."""
    whole = {"apiVersion": "v1", "kind": "List", "items": list(manifests)}
    click.echo(to_json(whole, indent=2))


class _Representer(SafeRepresenter):  # type: ignore[misc]
    """Text in the plainest form that every reader takes for that text."""

    def ignore_aliases(self, _data: Any) -> bool:
        return True

    def represent_str(self, text: str) -> ScalarNode:
        style = '"'
        if _PLAIN.fullmatch(text) and text.lower() not in _NO_STRINGS:
            style = ""
        elif "\n" in text and _fits_a_block(text):
            style = "|"
        return self.represent_scalar("tag:yaml.org,2002:str", text, style=style)

    def represent_float(self, number: float) -> ScalarNode:
        """With a point, without which YAML 1.1 takes `1e-07` for text."""
        text = json.dumps(number, allow_nan=False)
        return self.represent_scalar(
            "tag:yaml.org,2002:float", text if "." in text else text.replace("e", ".0e")
        )


for _kind in (str, Masked):
    _Representer.add_representer(_kind, _Representer.represent_str)
_Representer.add_representer(float, _Representer.represent_float)


def _fits_a_block(text: str) -> bool:
    lines = text.split("\n")
    plain = all(line.isprintable() and line == line.rstrip() for line in lines)
    return plain and not text[0].isspace() and not any(map(is_ci_command, lines))
