"""The manifests of one attempt, ready to send: rendered, transformed, and checked once more."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from engine.api.model import Job, Limits
from engine.api.pod_fields import field_of
from engine.errors import (
    Diagnostic,
    InvalidInputError,
    RenderError,
    internal_error,
)
from engine.limits import check_pod
from engine.limits.source_location import location_of
from engine.render.manifests import Manifests, place_in_template, render_job
from engine.render.templates import BUILT_IN_SET, Templates
from engine.render.variables import SecretValues
from engine.transform import transform
from engine.transform.check_job import job_faults
from engine.transform.context import TransformContext

_CONTAINERS = ("services", "initContainers")


@dataclass(frozen=True, slots=True)
class RenderConfig:
    """How this engine renders: its templates, its source, and the operator's limits.

    A manifest that was rendered under another one, even an equal one, is rendered anew.
    """

    templates: Templates
    source: str
    limits: Limits


def render_attempt(
    config: RenderConfig,
    job: Job,
    attempt: int,
    policies: Mapping[str, str],
    secrets: SecretValues | None,
    *,
    pod_only: bool = False,
) -> Manifests:
    """Manifests of an attempt; the Secret's values are masked when `secrets` is None.

    Errors: RenderError, InvalidInputError when a template or the pod patch
    made what is no run-to-completion job, or brought in what the operator's limits forbid.
    """
    raw = render_job(config.templates, job, attempt, secrets=secrets, pod_only=pod_only)
    kubernetes = config.templates.kubernetes
    context = TransformContext(job, config.source, attempt, policies, config.limits, kubernetes)
    pod = transform(raw.pod, context)
    problems = (
        *_check_job(pod, raw.pod, context, config.templates),
        *check_pod(pod, job, config.limits),
    )
    if problems:
        raise InvalidInputError(problems)
    return Manifests(pod, tuple(transform(manifest, context) for manifest in raw.dependents))


def _check_job(
    pod: Mapping[str, Any], made: Mapping[str, Any], context: TransformContext, templates: Templates
) -> Iterator[Diagnostic]:
    """All by which `pod` is no run-to-completion job.

    A fault that `made`, the rendered pod, has already is the template's, at its place; the others
    are the pod patch's. The fault of a container that the spec names is reported in the spec.
    """
    job, faults = context.job, job_faults(pod)
    if not faults:
        return
    of_template = {fault.message for fault in job_faults(made)}
    in_spec = {item["name"] for field in _CONTAINERS for item in job.spec.get(field, ())}
    for fault in faults:
        where = location_of(job, pod, fault.path)
        message = f"spec.podPatch makes a pod in which {fault.message}"
        if fault.message in of_template:
            message = context.template_error(pod, fault.message).cause
            if field_of(pod, *fault.path, "name") not in in_spec:
                where = place_in_template(templates, job, "pod", fault.path) or job.place
        yield Diagnostic(where, message, fault.hint)


def has_to_be_rendered(config: RenderConfig, job: Job) -> bool:
    """Whether only rendering can find every problem: templates of one's own, or a pod patch.

    The built-in templates alone have nothing else to go wrong in a spec that passed its checks.
    """
    return _has_own_templates(config, job) or "podPatch" in job.spec


def _has_own_templates(config: RenderConfig, job: Job) -> bool:
    return config.templates.has_own or job.spec["template"] != BUILT_IN_SET


def render_problems(
    config: RenderConfig, job: Job, policies: Mapping[str, str]
) -> tuple[Diagnostic, ...]:
    """What only rendering can find wrong, in a first attempt with `policies`.

    Of the built-in templates the pod alone is rendered: a patch is about that.
    """
    if not has_to_be_rendered(config, job):
        return ()
    pod_only = not _has_own_templates(config, job)
    return try_render_attempt(config, job, 1, policies, None, pod_only=pod_only)[1]


def limit_problems(config: RenderConfig, job: Job) -> tuple[Diagnostic, ...]:
    """What the operator's limits forbid in the pod of a first attempt.

    A pod that can't be rendered has other problems, which are reported when it is to be sent.
    """
    context = TransformContext(
        job, config.source, 1, limits=config.limits, kubernetes=config.templates.kubernetes
    )
    try:
        raw = render_job(config.templates, job, 1, secrets=None, pod_only=True)
        pod = transform(raw.pod, context)
    except (InvalidInputError, RenderError):
        return ()
    exceeded = check_pod(pod, job, config.limits)
    return (*_check_job(pod, raw.pod, context, config.templates), *exceeded) if exceeded else ()


def try_render_attempt(
    config: RenderConfig,
    job: Job,
    attempt: int,
    policies: Mapping[str, str],
    secrets: SecretValues | None,
    *,
    pod_only: bool = False,
) -> tuple[Manifests | None, tuple[Diagnostic, ...]]:
    """The same, with its errors as problems at the template's or else the job's place.

    Guarantees: never raises; what the engine itself stumbles over is a problem of the job's file.
    """
    try:
        return render_attempt(config, job, attempt, policies, secrets, pod_only=pod_only), ()
    except InvalidInputError as error:
        return None, error.problems
    except RenderError as error:
        where = job.place if isinstance(error.where, str) else error.where
        return None, (Diagnostic(where, error.cause, error.hint),)
    except Exception as error:  # noqa: BLE001 - one job must not stop the others
        return None, (internal_error(job.place.file, error),)
