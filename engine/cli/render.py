"""`engine render`: the manifests of the first attempt, as they would be sent."""

import os
from pathlib import Path
from typing import Any

import click

from engine.cli import options
from engine.cli.loading import load_config, load_valid_specs
from engine.cli.printers.manifests import print_json, print_yaml
from engine.decide.pull_cursor import policies_of_attempt
from engine.errors import Diagnostic, InvalidInputError
from engine.reconcile.rendering import RenderConfig, try_render_attempt
from engine.reconcile.secret_values import resolve_secrets
from engine.render.templates import Templates


@click.command()
@options.paths
@options.namespace
@options.defaults_root
@options.config
@options.templates
@options.kubernetes_schema
@options.allow_secret_env
@options.source
@options.option("--show-secrets", is_flag=True, help="Print the values of secrets.")
@options.output("yaml", "json")
def command(
    paths: tuple[str, ...],
    filenames: tuple[str, ...],
    namespace: str,
    defaults_root: Path | None,
    config: Path | None,
    templates: Path | None,
    kubernetes_schema: Path | None,
    allow_secret_env: tuple[str, ...],
    source: str,
    show_secrets: bool,
    output: str,
) -> None:
    """Print the manifests that the specs stand for.

    For each job its Pod, its Secret, its ConfigMap.
    Values of secrets are masked, and needn't be there, unless --show-secrets is given. Owner
    references are missing: they need the UID that the pod gets when it is created.
    """
    settings = load_config(config, kubernetes_schema, allow_secret_env)
    jobs = load_valid_specs(
        options.all_paths(paths, filenames), settings, namespace, defaults_root
    ).jobs
    rendering = RenderConfig(Templates(templates, settings.kubernetes), source, settings.limits)
    manifests: list[dict[str, Any]] = []
    problems: list[Diagnostic] = []
    for job in jobs:
        secrets, missing = (
            resolve_secrets(job, os.environ, settings.limits) if show_secrets else (None, ())
        )
        policies = policies_of_attempt(job, ())
        made, found = try_render_attempt(rendering, job, 1, policies, secrets)
        problems.extend((*missing, *found))
        manifests.extend((made.pod, *made.dependents) if made else ())
    if problems:
        raise InvalidInputError(tuple(dict.fromkeys(problems)))
    (print_json if output == "json" else print_yaml)(manifests)
