"""`engine explain`: the type, default and meaning of a field, as `kubectl explain` has them."""

import json
import textwrap
from typing import Any

import click
from msgspec.structs import replace

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
    JobDefaults.metadata or EngineConfig.limits.maxTtl, it is of that kind. Without one it is of a
    JobSpec, whose spec need not be named: timeout is spec.timeout.
    """
    kind, path = kind_and_path(field)
    found = explain_field(kind, path)

    def head(field: FieldDoc) -> str:
        default = f" (default {_value(field.default)})" if field.default is not None else ""
        return f"<{field.type}>{' (required)' if field.required else default}"

    facts: dict[str, Any] = {"kind": kind, "version": API_VERSION}
    if path:
        facts |= {
            "field": f"{'.'.join(path)} {head(replace(found, default=None))}",
            "one of": ", ".join(found.choices) or None,
            "default": _value(found.default),
            "form": found.form or None,
            "change": found.change,
            "example": _value(found.example),
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
    """The kind that a path begins with, else a JobSpec, and its steps; [] is none.

    A path without a kind begins in the spec, unless its first step is beside that.
    """
    steps = [step for step in field.replace("[]", "").split(".") if step]
    kinds = {kind.lower(): kind for kind in KINDS}
    kind = kinds.get(steps[0].lower()) if steps else None
    if kind:
        return kind, steps[1:]
    beside = [field.name for field in explain_field(KINDS[0], ()).fields]
    return KINDS[0], steps if steps[:1] and steps[0] in beside else ["spec", *steps]
