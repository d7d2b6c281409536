"""`engine schema`: the JSON Schema of a kind for editors, and what a cluster needs of all kinds."""

import click

from engine.api.kubernetes_schema import bundled_schema
from engine.api.versions import CUSTOM_RESOURCES, JOB_SPEC, SCHEMAS, read_schema
from engine.cli import options

_KINDS = click.Choice(sorted({kind for _, kind in SCHEMAS}), case_sensitive=False)


@options.verb(
    "engine schema",
    "engine schema EngineConfig",
    "engine schema --crd",
    params=[
        click.Argument(["kind"], type=_KINDS, default=JOB_SPEC, metavar="[KIND]"),
        options.flag(
            "--crd",
            "Print what a cluster needs for JobSpec objects, for kubectl apply --server-side.",
        ),
    ],
)
def command(kind: str, crd: bool) -> None:
    """Print the JSON Schema of a kind.

    KIND is JobSpec unless another one is named. --crd prints the CustomResourceDefinitions of
    JobSpec and JobDefaults in its place, and the ValidatingAdmissionPolicies that refuse what a
    schema can't. The chart adds the limits of its EngineConfig to them.
    """
    if not crd:
        click.echo(bundled_schema(kind), nl=False)
        return
    from engine.cli.printers.manifests import print_yaml  # noqa: PLC0415 - for this flag alone

    print_yaml(read_schema(CUSTOM_RESOURCES))
