"""The manifests of one attempt, ready to send: rendered, transformed, and checked once more."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engine.api.checks import matches_any
from engine.api.model import Job, Limits
from engine.errors import Diagnostic, InvalidInputError, PatchError, TemplateRenderError
from engine.render.manifests import Manifests, render_job
from engine.render.templates import BUILT_IN_SET, Templates
from engine.render.variables import SecretValues
from engine.transform import transform
from engine.transform.context import TransformContext
from engine.transform.manifest_edit import containers_of


@dataclass(frozen=True, slots=True)
class RenderConfig:
    """How this engine renders: its templates, its source, and the operator's limits.

    What was rendered under another one, even an equal one, is rendered anew.
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
) -> Manifests:
    """Manifests of an attempt; the Secret's values are masked when `secrets` is None.

    Errors: TemplateRenderError, PatchError, InvalidInputError when a template or the pod patch
    brought in what the operator's limits forbid.
    """
    raw = render_job(config.templates, job, attempt, secrets=secrets)
    kubernetes = config.templates.kubernetes
    context = TransformContext(job, config.source, attempt, policies, kubernetes)
    pod = transform(raw.pod, context)
    _check_limits(pod, job, config.limits)
    return Manifests(pod, tuple(transform(manifest, context) for manifest in raw.dependents))


def has_user_templates(config: RenderConfig, job: Job) -> bool:
    """Whether users wrote anything that only rendering can find wrong: templates, a pod patch.

    The built-in templates alone have nothing to go wrong in a spec that passed its checks.
    """
    own = config.templates.has_own or job.spec["template"] != BUILT_IN_SET
    return own or "podPatch" in job.spec


def try_render_attempt(
    config: RenderConfig,
    job: Job,
    attempt: int,
    policies: Mapping[str, str],
    secrets: SecretValues | None,
) -> tuple[Manifests | None, tuple[Diagnostic, ...]]:
    """The same, with what is wrong as problems at the template's or else the job's place."""
    try:
        return render_attempt(config, job, attempt, policies, secrets), ()
    except InvalidInputError as error:
        return None, error.problems
    except (TemplateRenderError, PatchError) as error:
        where = job.place if isinstance(error.where, str) else error.where
        return None, (Diagnostic(where, error.cause, error.hint),)


def _check_limits(pod: Mapping[str, Any], job: Job, limits: Limits) -> None:
    problems = []
    for container in containers_of(pod):
        image, policy = container.get("image", ""), container.get("imagePullPolicy")
        if limits.allowed_images is not None and not matches_any(image, limits.allowed_images):
            problems.append(
                Diagnostic(
                    job.place,
                    f"the pod's container {container.get('name')} has the image {image}, "
                    "which is not allowed",
                    f"limits.allowedImages: {', '.join(limits.allowed_images) or 'none'}",
                )
            )
        allowed = limits.allowed_pull_policies
        if policy and allowed is not None and policy not in allowed:
            problems.append(
                Diagnostic(
                    job.place,
                    f"the pod's container {container.get('name')} has the pull policy {policy}, "
                    "which is not allowed",
                    f"limits.allowedPullPolicies: {', '.join(allowed)}",
                )
            )
    if problems:
        raise InvalidInputError(tuple(problems))
