"""`engine schema`: the JSON Schema of a kind, for editors and other tools."""

import click

from engine.api.versions import API_VERSION, JOB_SPEC, SCHEMAS, bundled_schema
from engine.cli import options

_KINDS = click.Choice(sorted({kind for _, kind in SCHEMAS}), case_sensitive=False)


@options.verb(
    "engine schema",
    "engine schema EngineConfig",
    params=[click.Argument(["kind"], type=_KINDS, default=JOB_SPEC, metavar="[KIND]")],
)
def command(kind: str) -> None:
    """Print the JSON Schema of a kind.

    KIND is JobSpec unless another one is named.
    """
    click.echo(bundled_schema(API_VERSION, kind), nl=False)
