"""`engine schema`: the JSON Schema of a kind for editors, and what a cluster needs of all kinds."""

from pathlib import Path

import click

from engine.api.versions import API_VERSION, JOB_SPEC, SCHEMAS, bundled_schema
from engine.cli import options

_KINDS = click.Choice(sorted({kind for _, kind in SCHEMAS}), case_sensitive=False)


@options.verb(
    "engine schema",
    "engine schema EngineConfig",
    "engine schema --crd --config engine.yaml",
    params=[
        click.Argument(["kind"], type=_KINDS, default=JOB_SPEC, metavar="[KIND]"),
        options.option(
            "--crd",
            is_flag=True,
            help="Print what a cluster needs for JobSpec objects, for kubectl apply --server-side.",
        ),
        options.CONFIG,
    ],
)
def command(kind: str, crd: bool, config: Path | None) -> None:
    """Print the JSON Schema of a kind.

    KIND is JobSpec unless another one is named. --crd prints the CustomResourceDefinitions of
    JobSpec and JobDefaults in its place, and the ValidatingAdmissionPolicies that refuse what a
    schema can't, the limits of the EngineConfig among it.
    """
    if not crd:
        click.echo(bundled_schema(API_VERSION, kind), nl=False)
        return
    # For this flag alone.
    from engine.api.admission_policy import admission_policies  # noqa: PLC0415
    from engine.api.crd import custom_resource_definitions  # noqa: PLC0415
    from engine.cli.loading import SpecOptions, load_settings  # noqa: PLC0415
    from engine.cli.printers.manifests import print_yaml  # noqa: PLC0415

    document = load_settings(SpecOptions((), "", None, config)).document
    limits = (document.data.get("limits") or {}) if document else {}
    print_yaml((*custom_resource_definitions(), *admission_policies(limits)))
