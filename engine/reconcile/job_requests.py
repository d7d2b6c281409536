"""Carry out a user's request for one job: record first, by compare-and-swap, then the pod.

An engine that works on the job at the same time loses the race for the record and reads it again.
"""

from collections.abc import Callable
from contextlib import suppress

from engine.api.model import Job
from engine.cluster import api
from engine.cluster.client import Client
from engine.cluster.records import read_record, write_record
from engine.errors import AlreadyExistsError, ConflictError, UsageError, no_record
from engine.lifecycle.record import Record
from engine.refs import JobKey, Ref
from engine.status.outcome import State

_TRIES = 5


def cancel_job(client: Client, key: JobKey, message: str) -> str:
    """Returns the change in words. Errors: UsageError for a job without a record."""

    def cancel(record: Record) -> Record | None:
        return None if record.state.is_final else record.cancelled(message, client.now())

    before, changed = _change(client, key, cancel)
    if not changed:
        return f"is already over: {before.state}"
    attempt = before.open_attempt
    if attempt is None or not attempt.uid:
        return "cancelled; it had no pod"
    api.delete(client, Ref("Pod", key.namespace, attempt.pod), uid=attempt.uid)
    return f"cancelled; pod {attempt.pod} deleted"


def rerun_job(client: Client, key: JobKey) -> str:
    """Returns the change in words. Errors: UsageError for a job without a record, or not over."""

    def rerun(record: Record) -> Record:
        if not record.state.is_final:
            raise _under_way(record)
        return record.again()

    before, _ = _change(client, key, rerun)
    return f"will run again; its last run was {before.state}"


def complete_job(
    client: Client, key: JobKey, message: str, source: str, job: Job | None = None
) -> str:
    """Returns the change in words. Without `job`, its spec, the record says which run is done.

    Errors: UsageError for a job without a record and without a spec, one of another source, and
    one that is under way.
    """

    def complete(record: Record) -> Record | None:
        spec = job or record
        if job is not None and record.source != source:
            words = f"the job belongs to source {record.source!r}, not to {source!r}"
            raise UsageError(words, where=str(key), hint="give its own --source")
        if record.open_attempt is not None:
            raise _under_way(record)
        if record.state is State.SUCCEEDED and record.spec_hash == spec.spec_hash:
            return None
        return record.as_completed(spec.spec_hash, spec.spec_fields, message, client.now())

    new = Record(key, source, job.spec_hash, spec_fields=job.spec_fields) if job else None
    before, changed = _change(client, key, complete, new, "name its spec, too: -f FILE")
    if changed:
        return f"recorded as {State.SUCCEEDED}; nothing was run"
    return f"is already over: {before.state}"


def _change(
    client: Client,
    key: JobKey,
    change: Callable[[Record], Record | None],
    new: Record | None = None,
    *hints: str,
) -> tuple[Record, bool]:
    """Write `change` of the record, unless that is None; the record before, and whether it changed.

    `new` stands for the record of a job that has none. Errors: UsageError without it.
    """
    for _ in range(_TRIES):
        before = read_record(client, key) or new
        if before is None:
            raise no_record(str(key), *hints)
        after = change(before)
        with suppress(ConflictError, AlreadyExistsError):
            if after is not None:
                write_record(client, after)
            return before, after is not None
    words = "the record changes faster than it can be written"
    raise ConflictError(words, where=str(key), status=409, reason="")


def _under_way(record: Record) -> UsageError:
    hint = f"engine cancel {record.key} first"
    return UsageError(f"the job is {record.state}", where=str(record.key), hint=hint)
