"""The manifests of one attempt, ready to send: rendered, transformed, and checked once more."""

from collections.abc import Mapping
from dataclasses import dataclass

from engine.api.model import Job, Limits
from engine.errors import (
    Diagnostic,
    InvalidInputError,
    PatchError,
    TemplateRenderError,
    internal_error,
)
from engine.limits import check_pod
from engine.podsecurity import Level
from engine.render.manifests import Manifests, render_job
from engine.render.templates import BUILT_IN_SET, Templates
from engine.render.variables import SecretValues
from engine.transform import transform
from engine.transform.context import TransformContext


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
    *,
    pod_only: bool = False,
) -> Manifests:
    """Manifests of an attempt; the Secret's values are masked when `secrets` is None.

    Errors: TemplateRenderError, PatchError, InvalidInputError when a template or the pod patch
    brought in what the operator's limits forbid.
    """
    raw = render_job(config.templates, job, attempt, secrets=secrets, pod_only=pod_only)
    kubernetes = config.templates.kubernetes
    context = TransformContext(job, config.source, attempt, policies, config.limits, kubernetes)
    pod = transform(raw.pod, context)
    problems = check_pod(pod, job, config.limits)
    if problems:
        raise InvalidInputError(problems)
    return Manifests(pod, tuple(transform(manifest, context) for manifest in raw.dependents))


def has_to_be_rendered(config: RenderConfig, job: Job) -> bool:
    """Whether only rendering can find what is wrong: templates, a pod patch, Pod Security.

    The built-in templates alone have nothing else to go wrong in a spec that passed its checks.
    """
    secured = config.limits.pod_security is not Level.PRIVILEGED
    return _has_own_templates(config, job) or secured or "podPatch" in job.spec


def _has_own_templates(config: RenderConfig, job: Job) -> bool:
    return config.templates.has_own or job.spec["template"] != BUILT_IN_SET


def render_problems(
    config: RenderConfig, job: Job, policies: Mapping[str, str]
) -> tuple[Diagnostic, ...]:
    """What only rendering can find wrong, in a first attempt with `policies`.

    Of the built-in templates the pod alone is rendered: patches and Pod Security are about that.
    """
    if not has_to_be_rendered(config, job):
        return ()
    pod_only = not _has_own_templates(config, job)
    return try_render_attempt(config, job, 1, policies, None, pod_only=pod_only)[1]


def try_render_attempt(
    config: RenderConfig,
    job: Job,
    attempt: int,
    policies: Mapping[str, str],
    secrets: SecretValues | None,
    *,
    pod_only: bool = False,
) -> tuple[Manifests | None, tuple[Diagnostic, ...]]:
    """The same, with what is wrong as problems at the template's or else the job's place.

    Guarantees: never raises; what the engine itself stumbles over is a problem of the job's file.
    """
    try:
        return render_attempt(config, job, attempt, policies, secrets, pod_only=pod_only), ()
    except InvalidInputError as error:
        return None, error.problems
    except (TemplateRenderError, PatchError) as error:
        where = job.place if isinstance(error.where, str) else error.where
        return None, (Diagnostic(where, error.cause, error.hint),)
    except Exception as error:  # noqa: BLE001 - one job must not stop the others
        return None, (internal_error(job.place.file, error),)
