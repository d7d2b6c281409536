"""Everything that can be found wrong before the first write: secrets, templates, namespaces."""

from collections.abc import Collection, Iterable, Mapping
from functools import partial

from engine.api.model import Job
from engine.cluster import api
from engine.cluster.client import Client
from engine.decide.pull_cursor import policies_of_attempt
from engine.decide.record import Record
from engine.errors import Diagnostic, ForbiddenError, InvalidInputError, in_order
from engine.reconcile.job_state import JobState, Rendered
from engine.reconcile.rendering import RenderConfig, has_to_be_rendered, try_render_attempt
from engine.reconcile.secret_values import resolve_secrets
from engine.refs import JobKey, Ref
from engine.runtime.retry import retry_transient
from engine.telemetry.redact import Redactor


def preflight(
    client: Client,
    states: Iterable[JobState],
    started: Collection[JobKey],
    config: RenderConfig,
    environment: Mapping[str, str],
    redactor: Redactor,
) -> None:
    """Resolve secrets, and render the next attempt where users wrote templates or patches.

    Those that are `started` need neither now: what they miss is a problem only if they are tried
    again. Errors: InvalidInputError with every problem of every job; nothing has been written then.
    """
    problems: list[Diagnostic] = []
    to_create: dict[str, Job] = {}
    for state in states:
        key = state.job.key
        to_start = key not in started
        problems.extend(resolve_and_render(state, config, environment, redactor, to_start=to_start))
        if state.record is None:
            to_create.setdefault(key.namespace, state.job)
    problems.extend(_missing_namespaces(client, to_create))
    if problems:
        raise InvalidInputError(in_order(problems))


def resolve_and_render(
    state: JobState,
    config: RenderConfig,
    environment: Mapping[str, str],
    redactor: Redactor,
    *,
    to_start: bool,
) -> tuple[Diagnostic, ...]:
    """Resolve a job's secrets into its state and, if it is `to_start`, render what may be broken.

    What is wrong, if that matters now: a job whose attempt is under way needs neither.
    """
    secrets, problems = resolve_secrets(state.job, environment, config.limits)
    logins = zip(state.job.credentials, secrets.passwords, strict=True)
    redactor.add((*secrets.all, *(f"{login.username}:{value}" for login, value in logins if value)))
    state.rendered = Rendered(config, secrets, secrets_resolved=not problems)
    if not to_start:
        return ()
    if problems or not has_to_be_rendered(config, state.job):
        return problems
    return _render_next(state, config)


def _render_next(state: JobState, config: RenderConfig) -> tuple[Diagnostic, ...]:
    """Render what will be sent first, so that a broken template is found before any write."""
    job, rendered = state.job, state.rendered
    record = state.record
    if record is None or record.spec_hash != job.spec_hash:
        record = Record(job.key, "", job.spec_hash)
    number = record.next_number
    policies = policies_of_attempt(job, record.attempts)
    made, problems = try_render_attempt(config, job, number, policies, rendered.secrets)
    rendered.attempt, rendered.manifests = (number, tuple(sorted(policies.items()))), made
    return problems


def _missing_namespaces(client: Client, to_create: Mapping[str, Job]) -> list[Diagnostic]:
    """A namespace that may not be looked at may still be there; the first create will tell."""
    problems = []
    for namespace, job in to_create.items():
        ref = Ref("Namespace", "", namespace)
        try:
            exists = retry_transient(partial(api.get, client, ref)) is not None
        except ForbiddenError:
            continue
        if not exists:
            named = job.names_namespace
            other = "change metadata.namespace" if named else "choose another with -n"
            problems.append(
                Diagnostic(
                    job.place,
                    f"there is no namespace {namespace} in the cluster",
                    f"kubectl create namespace {namespace}, or {other}",
                )
            )
    return problems
