"""All manifests of one attempt, as the templates make them: before any transform."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.api.model import Job
from engine.api.schema import check_manifest
from engine.errors import InvalidInputError, RenderError, SourceLocation
from engine.render.templates import Templates
from engine.render.variables import (
    SecretValues,
    config_items,
    has_secret,
    secret_data,
    template_variables,
)

MASK = "***"
_KINDS = {"pod": "Pod", "secret": "Secret", "configmap": "ConfigMap"}


@dataclass(frozen=True, slots=True)
class Manifests:
    """A pod and what it owns, in the order of creation."""

    pod: dict[str, Any]
    dependents: tuple[dict[str, Any], ...] = ()


def render_job(
    templates: Templates,
    job: Job,
    attempt: int,
    *,
    secrets: SecretValues | None,
    pod_only: bool = False,
) -> Manifests:
    """Manifests of attempt `attempt`; without `secrets` the Secret's values are masked.

    Errors: RenderError; InvalidInputError for fields that Kubernetes doesn't know.
    """
    variables = template_variables(job, attempt)
    pod = _render(templates, job, "pod", variables)
    dependents = () if pod_only else render_dependents(templates, job, variables, secrets)
    return Manifests(pod, dependents)


def render_dependents(
    templates: Templates, job: Job, variables: dict[str, Any], secrets: SecretValues | None
) -> tuple[dict[str, Any], ...]:
    """The Secret and ConfigMap of a job, as far as it needs them."""
    dependents = []
    if has_secret(job):
        names = SecretValues(dict.fromkeys(job.secrets, ""), ("",) * len(job.credentials))
        data = secret_data(job, secrets or names)
        if secrets is None:
            data = dict.fromkeys(data, MASK)
        dependents.append(
            _render(templates, job, "secret", {**variables, "secret": {"data": data}})
        )
    if config_items(job):
        dependents.append(_render(templates, job, "configmap", variables))
    return tuple(dependents)


def place_in_template(
    templates: Templates, job: Job, name: str, field: tuple[str | int, ...]
) -> SourceLocation | None:
    """Where the user's own `name` template writes the field; None for a built-in template."""
    own = templates.own_file(job.spec["template"], name)
    if own is None:
        return None
    return _TemplateText(own).locate(field)


def _render(templates: Templates, job: Job, name: str, variables: dict[str, Any]) -> dict[str, Any]:
    try:
        manifest = templates.render(job.spec["template"], name, variables)
    except RenderError as error:
        if not error.where:
            error.where = job.place
        raise
    if manifest.get("apiVersion") != "v1" or manifest.get("kind") != _KINDS[name]:
        raise RenderError(
            f"{name}.yaml.j2 must make a v1 {_KINDS[name]}, "
            f"not {manifest.get('apiVersion')} {manifest.get('kind')}",
            where=SourceLocation(f"{job.spec['template']}/{name}.yaml.j2"),
        )
    if name == "pod" and not manifest.get("spec"):
        raise RenderError(
            f"the template set {job.spec['template']} makes a Pod in which spec is missing",
            where=job.place,
        )
    own = templates.own_file(job.spec["template"], name)
    if own is not None:
        problems = tuple(check_manifest(manifest, templates.kubernetes, _TemplateText(own).locate))
        if problems:
            raise InvalidInputError(problems)
    return manifest


@dataclass(frozen=True, slots=True)
class _TemplateText:
    """Where fields are written in the text of a template, if a field is written there just once."""

    file: Path

    def locate(self, path: Sequence[str | int]) -> SourceLocation:
        """The place of the last name in `path`."""
        name = next((step for step in reversed(path) if isinstance(step, str)), "")
        starts = (f"{name}:", f'"{name}":', f"'{name}':")
        lines = self.file.read_text(encoding="utf-8").splitlines()
        found = [
            (number, len(line) - len(rest) + 1)
            for number, line in enumerate(lines, 1)
            if (rest := line.lstrip(" -")).startswith(starts)
        ]
        return SourceLocation(str(self.file), *(found[0] if len(found) == 1 else ()))
