"""`engine schema`: the JSON Schema of a kind for editors, and what a cluster needs of all kinds."""

import click

from engine.api.versions import API_VERSION, JOB_SPEC, SCHEMAS, bundled_schema
from engine.cli import options

_KINDS = click.Choice(sorted({kind for _, kind in SCHEMAS}), case_sensitive=False)


@options.verb(
    "engine schema",
    "engine schema EngineConfig",
    "engine schema --crd",
    params=[
        click.Argument(["kind"], type=_KINDS, default=JOB_SPEC, metavar="[KIND]"),
        options.option(
            "--crd",
            is_flag=True,
            help="Print the CustomResourceDefinitions of JobSpec and JobDefaults in place of it.",
        ),
    ],
)
def command(kind: str, crd: bool) -> None:
    """Print the JSON Schema of a kind.

    KIND is JobSpec unless another one is named.
    """
    if not crd:
        click.echo(bundled_schema(API_VERSION, kind), nl=False)
        return
    from engine.api.crd import custom_resource_definitions  # noqa: PLC0415 - for this flag alone
    from engine.cli.printers.manifests import print_yaml  # noqa: PLC0415

    print_yaml(custom_resource_definitions())
