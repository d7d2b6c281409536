"""The manifests of one attempt, ready to send: rendered, transformed, and checked once more."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from engine.api.model import Job, Limits
from engine.api.pod_fields import field_of
from engine.errors import Diagnostic, InvalidInputError, RenderError, internal_error
from engine.limits import check_pod
from engine.limits.source_location import location_of
from engine.render.manifests import Manifests, SecretValues, place_in_template, render_job
from engine.render.templates import BUILT_IN_SET, Templates
from engine.transform import transform
from engine.transform.check_job import job_faults
from engine.transform.context import TransformContext

Policies = Mapping[str, str]
"""The pull policy of each container."""
Secrets = SecretValues | None
"""None: the values are masked."""
_CONTAINERS = ("services", "initContainers")


class RenderConfig(Struct, frozen=True):
    """How this engine renders: its templates, its source, and the operator's limits.

    A manifest that was rendered under another one, even an equal one, is rendered anew.
    """

    templates: Templates
    source: str
    limits: Limits


def render_attempt(
    config: RenderConfig, job: Job, attempt: int, policies: Policies, secrets: Secrets
) -> Manifests:
    """Manifests of an attempt.

    Errors: RenderError, InvalidInputError when a template or the pod patch
    made what is no run-to-completion job, or brought in what the operator's limits forbid.
    """
    made, faults, exceeded = _render(config, job, attempt, policies, secrets)
    if faults or exceeded:
        raise InvalidInputError((*faults, *exceeded))
    return made


def limit_problems(config: RenderConfig, job: Job) -> tuple[Diagnostic, ...]:
    """What the operator's limits forbid in the pod of a first attempt.

    A pod that can't be rendered has other problems, which are reported when it is to be sent.
    """
    try:
        _, faults, exceeded = _render(config, job, 1, {}, None)
    except (InvalidInputError, RenderError):
        return ()
    return (*faults, *exceeded) if exceeded else ()


def _render(
    config: RenderConfig, job: Job, attempt: int, policies: Policies, secrets: Secrets
) -> tuple[Manifests, list[Diagnostic], tuple[Diagnostic, ...]]:
    """The manifests, what makes the pod no run-to-completion job, and what the limits forbid."""
    raw = render_job(config.templates, job, attempt, secrets)
    kubernetes = config.templates.kubernetes
    context = TransformContext(job, config.source, attempt, policies, config.limits, kubernetes)
    pod, *dependents = [transform(one, context) for one in (raw.pod, *raw.dependents)]
    faults = _faults(pod, raw.pod, context, config.templates)
    return Manifests(pod, tuple(dependents)), faults, check_pod(pod, job, config.limits)


def _faults(
    pod: Mapping[str, Any], made: Mapping[str, Any], context: TransformContext, templates: Templates
) -> list[Diagnostic]:
    """All by which `pod` is no run-to-completion job.

    A fault that `made`, the rendered pod, has already is the template's, at its place; the others
    are the pod patch's. The fault of a container that the spec names is reported in the spec.
    """
    found: list[Diagnostic] = []
    job, faults = context.job, job_faults(pod)
    if not faults:
        return found
    of_template = {fault.message for fault in job_faults(made)}
    in_spec = {item["name"] for field in _CONTAINERS for item in job.spec.get(field, ())}
    own = templates.own_file(job.spec["template"], "pod")
    for fault in faults:
        where = location_of(job, pod, fault.path)
        message = f"spec.podPatch makes a pod in which {fault.message}"
        if fault.message in of_template:
            message = context.template_error(pod, fault.message).cause
            if field_of(pod, *fault.path, "name") not in in_spec:
                where = place_in_template(own, fault.path) if own else job.place
        found.append(Diagnostic(where, message, fault.hint))
    return found


def has_to_be_rendered(config: RenderConfig, job: Job) -> bool:
    """Whether only rendering can find every problem: templates of one's own, or a pod patch.

    The built-in templates alone have nothing else to go wrong in a spec that passed its checks.
    """
    is_built_in = not config.templates.has_own and job.spec["template"] == BUILT_IN_SET
    return not is_built_in or "podPatch" in job.spec


def try_render_attempt(
    config: RenderConfig, job: Job, attempt: int, policies: Policies, secrets: Secrets
) -> tuple[Manifests | None, tuple[Diagnostic, ...]]:
    """The same, with its errors as problems at the template's or else the job's place.

    Guarantees: never raises; what the engine itself stumbles over is a problem of the job's file.
    """
    try:
        return render_attempt(config, job, attempt, policies, secrets), ()
    except InvalidInputError as error:
        return None, error.problems
    except RenderError as error:
        where = job.place if isinstance(error.where, str) else error.where
        return None, (Diagnostic(where, error.cause, error.hint),)
    except Exception as error:  # noqa: BLE001 - one job must not stop the others
        return None, (internal_error(job.place.file, error),)
