"""Everything that can be found wrong before the first write: secrets, templates, namespaces."""

from collections.abc import Collection, Iterable, Mapping

from engine.api.model import Job
from engine.cluster import api
from engine.cluster.client import Client
from engine.decide.pull_cursor import policies_of_attempt
from engine.decide.record import Record
from engine.errors import ForbiddenError, InvalidInputError, Problem
from engine.reconcile.attempt_manifests import Rendering, checked_manifests, may_be_broken
from engine.reconcile.memory import JobMemory
from engine.reconcile.secret_values import resolve_secrets
from engine.refs import Ref
from engine.telemetry.redact import Redactor


def preflight(
    client: Client,
    memories: Iterable[JobMemory],
    under_way: Collection[JobMemory],
    rendering: Rendering,
    environment: Mapping[str, str],
    redactor: Redactor,
) -> None:
    """Resolve secrets, and render the next attempt where users wrote templates or patches.

    Those `under_way` need neither now: what they miss is a problem only if they are tried again.
    Errors: InvalidInputError with every problem of every job; nothing has been written then.
    """
    problems: list[Problem] = []
    to_create: dict[str, Job] = {}
    running = {memory.job.key for memory in under_way}
    for memory in memories:
        to_start = memory.job.key not in running
        problems.extend(prepare(memory, rendering, environment, redactor, to_start=to_start))
        if memory.record is None:
            to_create.setdefault(memory.job.namespace, memory.job)
    problems.extend(_missing_namespaces(client, to_create))
    if problems:
        raise InvalidInputError(tuple(sorted(set(problems), key=lambda p: p.where)))


def prepare(
    memory: JobMemory,
    rendering: Rendering,
    environment: Mapping[str, str],
    redactor: Redactor,
    *,
    to_start: bool,
) -> tuple[Problem, ...]:
    """Resolve a job's secrets into its memory and, if it is `to_start`, render what may be broken.

    What is wrong, if that matters now: a job whose attempt is under way needs neither.
    """
    memory.secrets, found = resolve_secrets(memory.job, environment)
    memory.knows_secrets = not found
    redactor.learn(memory.secrets.all)
    if not to_start:
        return ()
    if found or not may_be_broken(rendering, memory.job):
        return found
    return _render_next(memory, rendering)


def _render_next(memory: JobMemory, rendering: Rendering) -> tuple[Problem, ...]:
    """Render what will be sent first, so that a broken template is found before any write."""
    job, fresh = memory.job, Record(memory.job.key, "", memory.job.spec_hash)
    same = memory.record is not None and memory.record.spec_hash == job.spec_hash
    record = memory.record if memory.record is not None and same else fresh
    number, attempts = record.next_number, record.attempts
    policies = policies_of_attempt(job, attempts)
    made, problems = checked_manifests(rendering, job, number, policies, memory.secrets)
    if made is not None:
        memory.manifests = ((number, tuple(sorted(policies.items()))), made)
    return problems


def _missing_namespaces(client: Client, to_create: Mapping[str, Job]) -> list[Problem]:
    """A namespace that may not be looked at may still be there; the first create will tell."""
    problems = []
    for namespace, job in to_create.items():
        try:
            exists = api.get(client, Ref("Namespace", "", namespace)) is not None
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
