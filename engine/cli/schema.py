"""`engine schema`: the JSON Schema of a kind, for editors and other tools."""

import click

from engine.api.versions import API_VERSION, JOB_SPEC, SCHEMAS, bundled_schema
from engine.cli import options


@options.verb(
    "engine schema",
    "engine schema EngineConfig",
    params=(
        click.Argument(
            ["kind"],
            type=click.Choice(sorted({kind for _, kind in SCHEMAS}), case_sensitive=False),
            default=JOB_SPEC,
        ),
        options.option(
            "--api-version",
            type=click.Choice(sorted({version for version, _ in SCHEMAS})),
            default=API_VERSION,
            help="Version of the kind.",
        ),
    ),
)
def command(kind: str, api_version: str) -> None:
    """Print the JSON Schema of a kind.

    KIND is JobSpec unless another one is named.
    """
    if (api_version, kind) not in SCHEMAS:
        raise click.UsageError(f"{kind} is no kind of {api_version}")
    click.echo(bundled_schema(api_version, kind), nl=False)
