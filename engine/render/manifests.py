"""All manifests of one attempt, as the templates make them: before any transform."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.api.kubernetes_fields import manifest_faults, place_in_text
from engine.api.model import Job
from engine.errors import Diagnostic, InvalidInputError, SourceLocation, TemplateRenderError
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

    Errors: TemplateRenderError; InvalidInputError for fields that Kubernetes doesn't know.
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
    return place_in_text(own.read_text(encoding="utf-8"), str(own), field)


def _render(templates: Templates, job: Job, name: str, variables: dict[str, Any]) -> dict[str, Any]:
    try:
        manifest = templates.render(job.spec["template"], name, variables)
    except TemplateRenderError as error:
        if not error.where:
            error.where = job.place
        raise
    if manifest.get("apiVersion") != "v1" or manifest.get("kind") != _KINDS[name]:
        raise TemplateRenderError(
            f"{name}.yaml.j2 must make a v1 {_KINDS[name]}, "
            f"not {manifest.get('apiVersion')} {manifest.get('kind')}",
            where=SourceLocation(f"{job.spec['template']}/{name}.yaml.j2"),
        )
    own = templates.own_file(job.spec["template"], name)
    if own is not None:
        _check_fields(templates, own, manifest)
    return manifest


def _check_fields(templates: Templates, own: Path, manifest: dict[str, Any]) -> None:
    """Errors: InvalidInputError with everything in the manifest that Kubernetes would refuse."""
    faults = [*manifest_faults(templates.kubernetes, manifest)]
    if faults:
        text = own.read_text(encoding="utf-8")
        raise InvalidInputError(
            tuple(
                Diagnostic(place_in_text(text, str(own), fault.path), fault.message, fault.hint)
                for fault in faults
            )
        )
