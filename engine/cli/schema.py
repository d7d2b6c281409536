"""`engine schema`: the JSON Schema of a kind, for editors and other tools."""

import click

from engine.api.schema import API_VERSION, JOB_SPEC, SCHEMA_FILES, schema_text

_KINDS = sorted(kind for version, kind in SCHEMA_FILES if version == API_VERSION)


@click.command()
@click.argument("kind", type=click.Choice(_KINDS), default=JOB_SPEC)
def command(kind: str) -> None:
    """Print the JSON Schema of KIND (default: JobSpec)."""
    click.echo(schema_text(API_VERSION, kind), nl=False)
