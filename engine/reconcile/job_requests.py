"""Carry out a user's request for one job: record first, by compare-and-swap, then the pod.

An engine that works on the job at the same time loses the race for the record and reads it again.
"""

from collections.abc import Callable
from contextlib import suppress

from engine.api.model import Job
from engine.cluster import api
from engine.cluster.client import Client
from engine.cluster.records import read_record, write_record
from engine.errors import AlreadyExistsError, ConflictError, NoRecordError, UsageError
from engine.lifecycle.record import Record
from engine.refs import JobKey, Ref
from engine.status.outcome import State

_TRIES = 5


def cancel_job(client: Client, key: JobKey, message: str) -> str:
    """Returns the change in words. Errors: UsageError for a job without a record."""
    before = _change(client, key, lambda record: record.cancelled(message, client.now()))
    if before.state.is_final:
        return f"is already over: {before.state}"
    attempt = before.open_attempt
    if attempt is None or not attempt.uid:
        return "cancelled; it had no pod"
    api.delete(client, Ref("Pod", key.namespace, attempt.pod), uid=attempt.uid)
    return f"cancelled; pod {attempt.pod} deleted"


def rerun_job(client: Client, key: JobKey) -> str:
    """Returns the change in words. Errors: UsageError for a job without a record, or not over."""
    before = _change(client, key, Record.again, only_final=True)
    return f"will run again; its last run was {before.state}"


def complete_job(
    client: Client, key: JobKey, message: str, source: str, job: Job | None = None
) -> str:
    """Returns the change in words. Without `job`, its spec, the record says which run is done.

    Errors: UsageError for a job without a record and without a spec, one of another source, and
    one that is under way.
    """
    for _ in range(_TRIES):
        record = read_record(client, key)
        if job is not None:
            revision = job.spec_hash, job.spec_fields
        elif record is not None:
            revision = record.spec_hash, record.spec_fields
        else:
            raise NoRecordError(str(key), hint="name its spec, too: -f FILE")
        before = record or Record(key, source, revision[0], spec_fields=revision[1])
        if job is not None and before.source != source:
            words = f"the job belongs to source {before.source!r}, not to {source!r}"
            raise UsageError(words, where=str(key), hint="give its own --source")
        if before.open_attempt is not None:
            raise _under_way(before)
        if before.state is State.SUCCEEDED and before.spec_hash == revision[0]:
            return f"is already over: {before.state}"
        with suppress(ConflictError, AlreadyExistsError):
            write_record(client, before.as_completed(*revision, message, client.now()))
            return f"recorded as {State.SUCCEEDED}; nothing was run"
    raise _keeps_changing(key)


def _change(
    client: Client, key: JobKey, change: Callable[[Record], Record], *, only_final: bool = False
) -> Record:
    """Write `change` of the record unless there is nothing to change; the record before it."""
    for _ in range(_TRIES):
        record = read_record(client, key)
        if record is None:
            raise NoRecordError(str(key))
        if only_final and not record.state.is_final:
            raise _under_way(record)
        if not only_final and record.state.is_final:
            return record
        try:
            write_record(client, change(record))
        except ConflictError:
            continue
        return record
    raise _keeps_changing(key)


def _under_way(record: Record) -> UsageError:
    hint = f"engine cancel {record.key} first"
    return UsageError(f"the job is {record.state}", where=str(record.key), hint=hint)


def _keeps_changing(key: JobKey) -> ConflictError:
    return ConflictError(
        "the record changes faster than it can be written", where=str(key), status=409, reason=""
    )
