"""Everything that can be found wrong before the first write: secrets, templates, namespaces."""

from collections.abc import Collection, Iterable, Mapping
from functools import partial

from engine.api.model import Job
from engine.cluster.client import Client
from engine.cluster.discovery import missing_namespaces
from engine.errors import Diagnostic, InvalidInputError, in_order
from engine.lifecycle.pull_fallback import policies_of_attempt
from engine.lifecycle.record import Record
from engine.reconcile.job_store import Rendered, TrackedJob
from engine.refs import JobKey
from engine.render.attempt import RenderConfig, has_to_be_rendered, try_render_attempt
from engine.render.secret_values import resolve_secrets, texts_to_mask
from engine.runtime.retry import retry_transient
from engine.telemetry.redact import Redactor


def preflight(
    client: Client,
    states: Iterable[TrackedJob],
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
    for tracked in states:
        key = tracked.job.key
        to_start = key not in started
        problems.extend(
            resolve_and_render(tracked, config, environment, redactor, to_start=to_start)
        )
        if tracked.record is None:
            to_create.setdefault(key.namespace, tracked.job)
    problems.extend(retry_transient(partial(missing_namespaces, client, to_create)))
    if problems:
        raise InvalidInputError(in_order(problems))


def resolve_and_render(
    tracked: TrackedJob,
    config: RenderConfig,
    environment: Mapping[str, str],
    redactor: Redactor,
    *,
    to_start: bool,
) -> tuple[Diagnostic, ...]:
    """Resolve a job's secrets and, if it is `to_start`, render what may be broken.

    What is wrong, if that matters now: a job whose attempt is under way needs neither.
    """
    secrets, problems = resolve_secrets(tracked.job, environment, config.limits)
    redactor.add(texts_to_mask(tracked.job, secrets))
    tracked.rendered = Rendered(config, secrets, secrets_resolved=not problems)
    if not to_start:
        return ()
    if problems or not has_to_be_rendered(config, tracked.job):
        return problems
    # What will be sent first, so that a broken template is found before any write.
    job, rendered, record = tracked.job, tracked.rendered, tracked.record
    if record is None or record.spec_hash != job.spec_hash:
        record = Record(job.key, "", job.spec_hash)
    number = record.next_number
    policies = policies_of_attempt(job, record.attempts)
    made, problems = try_render_attempt(config, job, number, policies, rendered.secrets)
    rendered.attempt, rendered.manifests = (number, tuple(sorted(policies.items()))), made
    return problems
