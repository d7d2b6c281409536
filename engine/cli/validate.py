"""`engine validate`: everything that can be said about specs without a cluster."""

import os
from collections.abc import Iterator
from pathlib import Path

import click

from engine.api.model import Job
from engine.cli import options
from engine.cli.ci import is_github
from engine.cli.loading import load_config, load_named
from engine.cli.output import echo_diagnostic
from engine.cli.printers.text import pluralise
from engine.decide.pull_cursor import policies_of_attempt
from engine.errors import Diagnostic, ExitCode, Severity, TemplateRenderError, in_order
from engine.reconcile.rendering import RenderConfig, has_to_be_rendered, try_render_attempt
from engine.reconcile.secret_values import resolve_secrets
from engine.render.templates import Templates
from engine.render.variables import SecretValues
from engine.telemetry.redact import REDACTOR, SHORTEST, is_maskable


@click.command()
@options.paths
@options.namespace
@options.defaults_root
@options.config
@options.templates
@options.kubernetes_schema
@options.allow_secret_env
@options.output("text", "json", "sarif", "code-quality")
def command(
    paths: tuple[str, ...],
    filenames: tuple[str, ...],
    namespace: str,
    defaults_root: Path | None,
    config: Path | None,
    templates: Path | None,
    kubernetes_schema: Path | None,
    allow_secret_env: tuple[str, ...],
    output: str,
) -> None:
    """Check spec files; print file:line:col for every problem.

    A secret whose variable isn't set here is a warning: it need only be set where the job is
    started; so is one that is too short to be masked in messages. Exit code 2 if there is an
    error, else 0. Templates and pod patches of one's own are rendered too; the built-in templates
    alone have nothing to go wrong. SARIF is for code scanning on GitHub, code-quality for merge
    requests on GitLab; as text, problems are annotations besides where GitHub Actions runs this.
    """
    settings = load_config(config, kubernetes_schema, allow_secret_env)
    loaded = load_named(options.all_paths(paths, filenames), settings, namespace, defaults_root)
    problems = [*loaded.problems]
    rendering = RenderConfig(Templates(templates, settings.kubernetes), "default", settings.limits)
    broken = set()
    for name, job in {job.spec["template"]: job for job in reversed(loaded.jobs)}.items():
        try:
            rendering.templates.check(name)
        except TemplateRenderError as error:
            broken.add(name)
            where = job.place if isinstance(error.where, str) else error.where
            problems.append(Diagnostic(where, error.cause, error.hint))
    for job in loaded.jobs:
        if job.spec["template"] in broken:
            continue
        if has_to_be_rendered(rendering, job):
            policies = policies_of_attempt(job, ())
            problems.extend(try_render_attempt(rendering, job, 1, policies, None)[1])
        secrets, missing = resolve_secrets(job, os.environ, settings.limits)
        problems.extend(map(_unset_is_a_warning, missing))
        problems.extend(_too_short_to_mask(job, secrets))
    found = tuple(problem.map_text(REDACTOR) for problem in in_order(problems))
    if output == "text":
        _print_text(len(loaded.jobs), found)
    else:
        # Only who asks for a report pays for it.
        from engine.cli.printers.problems import PRINTERS  # noqa: PLC0415

        click.echo(PRINTERS[output](loaded.jobs, found, os.environ))
    if any(problem.severity is Severity.ERROR for problem in found):
        raise SystemExit(ExitCode.INVALID)


def _print_text(count: int, problems: tuple[Diagnostic, ...]) -> None:
    for problem in problems:
        echo_diagnostic(problem)
    if is_github(os.environ):
        from engine.cli.printers.github import annotations_of_problems  # noqa: PLC0415 - rare

        for line in annotations_of_problems(problems, os.environ):
            click.echo(line, err=True)
    if not any(problem.severity is Severity.ERROR for problem in problems):
        click.echo(f"{pluralise(count, 'job')}, all valid" if count else "no job specs found")


def _too_short_to_mask(job: Job, secrets: SecretValues) -> Iterator[Diagnostic]:
    refs = (*job.secrets.values(), *(credential.password for credential in job.credentials))
    for ref, value in zip(refs, secrets.all, strict=True):
        if value and not is_maskable(value):
            told = f"a secret of fewer than {SHORTEST} characters isn't masked in messages and logs"
            yield Diagnostic(ref.place, told, severity=Severity.WARNING)


def _unset_is_a_warning(problem: Diagnostic) -> Diagnostic:
    if problem.message.startswith("fromEnv"):
        return Diagnostic(problem.where, problem.message, problem.hint, Severity.WARNING)
    return problem
