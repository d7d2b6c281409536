"""`engine render`: the manifests of the first attempt, as they would be sent."""

from typing import Any

from msgspec.structs import replace

from engine.api.origins import origins
from engine.cli import options
from engine.cli.loading import first_policies, load_settings, load_valid_specs
from engine.cli.output import echo_table, to_json
from engine.cli.printers.manifests import print_json, print_yaml
from engine.errors import Diagnostic, InvalidInputError, UsageError
from engine.lifecycle.attempt import RenderConfig, try_render_attempt
from engine.render.templates import Templates
from engine.specdir.options import SpecOptions


@options.verb(
    "engine render jobs/build.yaml",
    "engine render jobs -o json",
    "engine render jobs/build.yaml --show-origin",
    params=(
        *options.PATHS,
        options.NAMESPACE,
        *options.SPEC_READING,
        options.NO_SPECS,
        options.SOURCE,
        options.flag(
            "--show-origin",
            "Print the values of the effective specs in place of the manifests, and where each"
            " comes from.",
        ),
        options.output("yaml", "json"),
    ),
)
def command(source: str, show_origin: bool, output: str, **given: Any) -> None:
    """Print the manifests of the specs.

    For each job its Pod, its Secret, its ConfigMap.
    Values of secrets are masked, and needn't be there. Owner
    references are missing: they need the UID that the pod gets when it is created. It is for
    reading, not for kubectl apply: the pod would wait for ever at its gate, which the engine opens.

    With --show-origin each value of the job's spec is printed in their place, every default among
    them, with the file, line and column that it comes from: the spec, a JobDefaults, or the
    EngineConfig, whose limits have the last word.
    """
    asked = SpecOptions(**given)
    if show_origin and output == "json":
        raise UsageError("--show-origin prints a table")
    settings = replace(load_settings(asked), keep_origins=show_origin)
    loaded = load_valid_specs(asked, settings)
    if show_origin:
        for job in loaded.jobs:
            values = origins(job, asked.namespace)
            rows = [(field, to_json(value), place) for field, value, place in values]
            echo_table([("FIELD", "VALUE", "FROM"), *rows])
        return
    rendering = RenderConfig(
        Templates(asked.templates, settings.kubernetes), source, settings.limits
    )
    manifests: list[dict[str, Any]] = []
    problems: list[Diagnostic] = []
    for job in loaded.jobs:
        made, found = try_render_attempt(rendering, job, 1, first_policies(job), None)
        problems += found
        manifests.extend((made.pod, *made.dependents) if made else ())
    if problems:
        raise InvalidInputError(tuple(dict.fromkeys(problems)))
    (print_json if output == "json" else print_yaml)(manifests)
