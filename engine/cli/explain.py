"""`engine explain`: the type, default and meaning of a field, as `kubectl explain` has them."""

import json
import textwrap
from typing import Any

import click

from engine.api.schema_docs import KINDS, FieldDoc, explain_field
from engine.api.versions import API_VERSION
from engine.cli import options

_WIDTH = 80
_NOTHING = "<no description>"


@options.verb(
    "engine explain spec.pullPolicy",
    "engine explain EngineConfig.limits",
    params=[click.Argument(["field"], default="")],
)
def command(field: str) -> None:
    """Print the type, the default and the meaning of a field.

    FIELD is a path such as spec.pullPolicy or spec.services.env; with a kind before it,
    JobDefaults.metadata or EngineConfig.limits.maxTtl, it is of that kind. Without one the fields
    of a JobSpec are listed.
    """
    kind, path = kind_and_path(field)
    found = explain_field(kind, path)

    def head(field: FieldDoc) -> str:
        return f"<{field.type}>{' (required)' if field.required else ''}"

    facts: dict[str, Any] = {"kind": kind, "version": API_VERSION}
    if path:
        facts |= {
            "field": f"{'.'.join(path)} {head(found)}",
            "one of": ", ".join(found.choices) or None,
            "default": _value(found.default),
            "form": found.form or None,
            "example": _value(found.example),
            "kubectl": f"kubectl explain {found.kubectl}" if found.kubectl else None,
        }
    for name, words in facts.items():
        if words is not None:
            click.echo(f"{name.upper() + ':':<11}{words}")
    click.echo("\n" + textwrap.fill(found.description or _NOTHING, _WIDTH))
    if found.fields:
        click.echo("\nFIELDS:")
    for below in found.fields:
        click.echo(f"  {below.name} {head(below)}")
        if below.description:
            click.echo(textwrap.indent(textwrap.fill(below.description, _WIDTH - 4), "    "))


def _value(value: Any) -> Any:
    is_plain = value is None or (isinstance(value, str) and "\n" not in value)
    return value if is_plain else json.dumps(value)


def kind_and_path(field: str) -> tuple[str, list[str]]:
    """The kind that a path begins with, else a JobSpec, and its steps; [] is none."""
    steps = [step for step in field.replace("[]", "").split(".") if step]
    kinds = {kind.lower(): kind for kind in KINDS}
    kind = kinds.get(steps[0].lower()) if steps else None
    return (kind, steps[1:]) if kind else (KINDS[0], steps)
