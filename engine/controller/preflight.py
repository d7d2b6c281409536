"""Everything that can be found wrong before the first write: secrets, templates, namespaces."""

from collections.abc import Collection, Iterable, Mapping

from engine.cluster.client import Client
from engine.cluster.objects import namespace_exists
from engine.controller.attempt_manifests import Rendering, attempt_manifests
from engine.controller.secret_values import resolve_secrets
from engine.controller.steps import JobMemory
from engine.decide.pull_cursor import policies_of_attempt
from engine.errors import (
    EngineError,
    ForbiddenError,
    InvalidInputError,
    PatchError,
    Problem,
    TemplateRenderError,
)
from engine.spec.model import Job
from engine.telemetry.redact import Redactor


def preflight(
    client: Client,
    memories: Iterable[JobMemory],
    under_way: Collection[JobMemory],
    rendering: Rendering,
    environment: Mapping[str, str],
    redactor: Redactor,
) -> None:
    """Resolve secrets and render the next attempt of each job, into its memory.

    Those `under_way` need neither now: what they miss is a problem only if they are tried again.
    Errors: InvalidInputError with every problem of every job; nothing has been written then.
    """
    problems: list[Problem] = []
    to_create: dict[str, Job] = {}
    for memory in memories:
        memory.secrets, found = resolve_secrets(memory.job, environment)
        redactor.learn(memory.secrets.all)
        if not any(memory is other for other in under_way):
            problems.extend(found or _render_next(memory, rendering))
        if memory.record is None:
            to_create.setdefault(memory.job.namespace, memory.job)
    problems.extend(_missing_namespaces(client, to_create))
    if problems:
        raise InvalidInputError(tuple(sorted(set(problems), key=lambda p: p.where)))


def template_problem(error: EngineError, job: Job) -> Problem:
    """The error as a problem with a place: the template's, or else the job's."""
    where = error.where if not isinstance(error.where, str) else job.place
    return Problem(where, error.cause, error.hint)


def _render_next(memory: JobMemory, rendering: Rendering) -> tuple[Problem, ...]:
    """Render what will be sent first, so that a broken template is found before any write."""
    record, job = memory.record, memory.job
    same = record is not None and record.spec_hash == job.spec_hash
    attempts = record.attempts if record is not None and same else ()
    last = attempts[-1] if attempts else None
    number = last.number if last is not None and last.is_open else len(attempts) + 1
    try:
        policies = policies_of_attempt(job, attempts)
        manifests = attempt_manifests(rendering, job, number, policies, memory.secrets)
    except InvalidInputError as error:
        return error.problems
    except (TemplateRenderError, PatchError) as error:
        return (template_problem(error, job),)
    memory.manifests = ((number, tuple(sorted(policies.items()))), manifests)
    return ()


def _missing_namespaces(client: Client, to_create: Mapping[str, Job]) -> list[Problem]:
    """A namespace that may not be looked at may still be there; the first create will tell."""
    problems = []
    for namespace, job in to_create.items():
        try:
            exists = namespace_exists(client, namespace)
        except ForbiddenError:
            continue
        if not exists:
            problems.append(
                Problem(
                    job.place,
                    f"there is no namespace {namespace} in the cluster",
                    f"kubectl create namespace {namespace}, or choose another with -n",
                )
            )
    return problems
