"""`engine validate`: everything that can be said about specs without a cluster."""

import os
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

import click
from msgspec.structs import replace

from engine.api.model import Job
from engine.api.yaml_reader import Document
from engine.cli import options
from engine.cli.loading import first_policies, load_named, load_settings, require_specs
from engine.cli.output import echo_data, echo_diagnostic, pluralise
from engine.errors import END, Diagnostic, ExitCode, Severity, in_order
from engine.lifecycle.attempt import RenderConfig, has_to_be_rendered, try_render_attempt
from engine.render.manifests import SecretValues
from engine.render.secret_values import resolve_secrets
from engine.render.templates import Templates
from engine.specdir.options import SpecOptions
from engine.telemetry.redact import REDACTOR, SHORTEST, is_maskable
from engine.values import map_text


@options.verb(
    "engine validate jobs",
    "engine validate jobs -o json",
    params=(
        *options.PATHS,
        options.NAMESPACE,
        *options.SPEC_READING,
        options.NO_SPECS,
        options.output("text", "json"),
    ),
)
def command(output: str, **given: Any) -> None:
    """Check spec files; print file:line:col for every problem.

    A secret whose variable isn't set here is a warning: it need only be set where the job is
    started; so is one that is too short to be masked in messages, and a value that kubectl reads
    otherwise (0755, on, yes): it reads YAML 1.1. Exit code 2 if there is an
    error, else 0. Your own templates and pod patches are rendered too; the built-in templates
    alone have nothing to go wrong.
    """
    asked = SpecOptions(**given)
    settings = replace(load_settings(asked), keep_origins=True)
    loaded = load_named(asked, settings)
    layers = {id(one): one for job in loaded.jobs if job.origin for one in job.origin.layers}
    problems = [*loaded.problems, *chain.from_iterable(map(Document.differences, layers.values()))]
    rendering = RenderConfig(
        Templates(asked.templates, settings.kubernetes), "default", settings.limits
    )
    for job in loaded.jobs:
        if has_to_be_rendered(rendering, job):
            problems += try_render_attempt(rendering, job, 1, first_policies(job), None)[1]
        secrets, missing = resolve_secrets(job, os.environ, settings.limits)
        problems.extend(map(_unset_is_a_warning, missing))
        problems.extend(_too_short_to_mask(job, secrets))
    found = map_text(in_order(problems), REDACTOR)
    is_valid = all(problem.severity is not Severity.ERROR for problem in found)
    if output == "json":
        echo_data(_problems_data(loaded.jobs, found), output)
    else:
        for problem in found:
            echo_diagnostic(problem)
        if is_valid and (loaded.jobs or asked.allow_empty):
            click.echo(f"{pluralise(len(loaded.jobs), 'job')}, all valid")
    if not is_valid:
        raise SystemExit(ExitCode.INVALID)
    require_specs(asked, loaded)


def _problems_data(jobs: Iterable[Job], problems: Iterable[Diagnostic]) -> dict[str, Any]:
    """The jobs that are valid, and every problem; lines are null where it is the whole file."""
    valid = [
        {"name": j.name, "namespace": j.namespace, "file": j.place.file, "line": j.place.line}
        for j in jobs
    ]
    found = []
    for problem in problems:
        where = problem.where
        line, column = (where.line, where.column) if 0 < where.line < END else (None, None)
        entry = {"file": where.file, "line": line, "column": column, "severity": problem.severity}
        found.append(entry | {"message": problem.message, "hint": problem.hint})
    return {"jobs": valid, "problems": found}


def _too_short_to_mask(job: Job, secrets: SecretValues) -> Iterator[Diagnostic]:
    values = (*secrets.variables.values(), *secrets.passwords)
    for ref, value in zip(job.secrets, values, strict=True):
        if value and not is_maskable(value):
            words = (
                f"a secret of fewer than {SHORTEST} characters isn't masked in messages and logs"
            )
            yield Diagnostic(ref.place, words, severity=Severity.WARNING)


def _unset_is_a_warning(problem: Diagnostic) -> Diagnostic:
    if problem.message.startswith("fromEnv"):
        return Diagnostic(problem.where, problem.message, problem.hint, Severity.WARNING)
    return problem
