"""Carry out a user's request for one job: record first, by compare-and-swap, then the pod.

An engine that works on the job at the same time loses the race for the record and reads it again.
"""

from collections.abc import Callable
from contextlib import suppress

from msgspec.structs import replace

from engine.api.model import Job
from engine.cluster import api
from engine.cluster.api import PODS
from engine.cluster.client import Client
from engine.cluster.records import (
    CONFIG_MAP_RECORDS,
    STATUS_RECORDS,
    job_object,
    read_record,
    write_record,
)
from engine.errors import AlreadyExistsError, ConflictError, NotFoundError, UsageError, no_record
from engine.informers.job_specs import object_hash
from engine.lifecycle.orphan import orphaned_since
from engine.lifecycle.ownership import Recorded
from engine.lifecycle.record import Record, mask_record
from engine.lifecycle.state import has_ended, is_terminating, uid_of
from engine.refs import JobKey, Ref
from engine.status.outcome import State
from engine.telemetry.redact import REDACTOR
from engine.times import format_time
from engine.wellknown import JOB, MANAGED_BY, MANAGER, SOURCE

_TRIES = 5


def cancel_job(
    client: Client, key: JobKey, message: str, *, only: str = "", dry_run: bool = False
) -> str:
    """Returns the change in words.

    Errors: UsageError for a job without a record, or with one of another revision than `only`.
    """

    def cancel(record: Record) -> Record | None:
        if only and record.spec_hash != only:
            raise UsageError(f"run {record.run} has superseded this one", where=str(key))
        return None if record.state.is_final else record.cancelled(message, client.now())

    before, after = _change(client, key, cancel, dry_run=dry_run)
    last = before.last if after is None else before.open_attempt
    if after is None and not is_half_cancelled(client, before):
        return f"is already over: {before.state}"
    if dry_run:
        pod = f"pod {last.pod} deleted" if last else "it has no pod"
        return f"would be cancelled, {pod} (dry run)"
    if last is None or not last.uid:
        if after is not None and after.history != before.history:
            return f"its rerun, which had not begun, is cancelled; its last run was {after.state}"
        return "cancelled; it had no pod"
    metadata = {"namespace": key.namespace, "name": last.pod, "uid": last.uid}
    with suppress(ConflictError):  # another pod has the name: this one is gone
        api.delete(client, PODS, metadata, Recorded(before))
    return f"cancelled; pod {last.pod} deleted"


def is_half_cancelled(client: Client, record: Record) -> bool:
    """Whether the job is Cancelled, and its pod runs on: its delete failed, or was never sent."""
    last = record.last
    if record.state is not State.CANCELLED or last is None or not last.uid:
        return False
    pod = api.get(client, Ref("Pod", record.key.namespace, last.pod))
    is_same = pod is not None and uid_of(pod) == last.uid
    return pod is not None and is_same and not (has_ended(pod) or is_terminating(pod))


def rerun_job(
    client: Client, key: JobKey, *, has_spec: bool = False, dry_run: bool = False
) -> Record:
    """Returns the record as it was before.

    Errors: UsageError for a job without a record, or not over, or whose record says that its spec
    is gone, unless it `has_spec`.
    """

    def rerun(record: Record) -> Record:
        since = orphaned_since(record.annotations)
        if since is not None and not has_spec:
            words = f"its spec is gone from source {record.source} since {format_time(since)}"
            raise UsageError(words, where=str(key), hint="if it is back, name it: -f FILE")
        if not record.state.is_final:
            raise _under_way(record)
        return record.again()

    return _change(client, key, rerun, dry_run=dry_run)[0]


def adopt_job(client: Client, key: JobKey, source: str, *, dry_run: bool = False) -> str:
    """Returns the change in words: the job belongs to `source` from now on.

    The record goes first: the source that it names has the job, whatever labels its pods have. So a
    second call relabels what a crash has left. Errors: UsageError for a job without a record.
    """

    def move(record: Record) -> Record | None:
        return None if record.source == source else replace(record, source=source)

    before, moved = _change(client, key, move, dry_run=dry_run)
    selector = f"{MANAGED_BY}={MANAGER},{JOB}={key.name},{SOURCE}!={source}"
    pages = api.list_all(client, PODS.path(key.namespace), selector)
    pods = [one["metadata"] for page in pages for one in page["items"]]
    ours = [pod for pod in pods if before.pods.get(pod["uid"]) == pod["name"]]
    for pod in () if dry_run else ours:
        with suppress(NotFoundError):
            relabelled = {"uid": pod["uid"], "labels": {SOURCE: source}}
            api.patch(client, PODS.ref(pod), {"metadata": relabelled})
    words = f"moved from source {before.source}" if moved else f"belongs to source {source} already"
    pods_too = f"; {len(ours)} pod{'' if len(ours) == 1 else 's'} relabelled" if ours else ""
    return f"{words}{pods_too}{' (dry run)' if dry_run else ''}"


def migrate_job(
    client: Client, key: JobKey, job: Job, source: str, *, to_objects: bool, dry_run: bool = False
) -> str:
    """Returns the change in words: the record of `job`, a file's, moves to its JobSpec object, or
    from there to a ConfigMap.

    A ConfigMap beats a status: one of both has the job at every moment, and a second call ends what
    a crash has left. Errors: UsageError for a job that is not over, has no record, or no object.
    """
    there, of_file = api.get(client, STATUS_RECORDS.ref(key)), CONFIG_MAP_RECORDS.read(client, key)
    of_object = STATUS_RECORDS.parse(there) if there is not None else None
    before = of_file if to_objects else of_object
    if before is None or (not to_objects and of_file is not None):
        if before is not None and not dry_run:
            STATUS_RECORDS.withdraw(client, before)
        return "has been moved; " + adopt_job(client, key, source, dry_run=dry_run)
    if not before.state.is_final:
        raise _under_way(before)
    if there is None:
        hint = f"kubectl apply -n {key.namespace} -f FILE makes it, and starts nothing"
        raise UsageError("there is no JobSpec object of this job", where=str(key), hint=hint)
    if dry_run:
        return "would be moved (dry run)"
    specs = (job.spec_hash, job.spec_fields), object_hash(there)
    moved = before.moved(*(specs if to_objects else reversed(specs)))
    moved = replace(moved, source=source, annotations={})
    if to_objects:
        version = there["metadata"]["resourceVersion"]
        moved = replace(moved, object=job_object(there), version=version)
        STATUS_RECORDS.write(client, mask_record(moved, REDACTOR))
        CONFIG_MAP_RECORDS.withdraw(client, before)
    else:
        written = CONFIG_MAP_RECORDS.write(
            client, mask_record(replace(moved, object=None, version=""), REDACTOR)
        )
        try:
            STATUS_RECORDS.withdraw(client, before)
        except ConflictError:
            CONFIG_MAP_RECORDS.withdraw(client, written)
            raise
    return "moved; " + adopt_job(client, key, source)


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
    before, after = _change(client, key, complete, new, "name its spec, too: -f FILE")
    if after is not None:
        return f"recorded as {State.SUCCEEDED}; nothing was run"
    return f"is already over: {before.state}"


def _change(
    client: Client,
    key: JobKey,
    change: Callable[[Record], Record | None],
    new: Record | None = None,
    *hints: str,
    dry_run: bool = False,
) -> tuple[Record, Record | None]:
    """Write `change` of the record, unless that is None; the record before, and what was written.

    `new` stands for the record of a job that has none. Errors: UsageError without it.
    """
    for _ in range(_TRIES):
        before = read_record(client, key) or new
        if before is None:
            raise no_record(str(key), *hints)
        after = change(before)
        with suppress(ConflictError, AlreadyExistsError):
            if after is not None and not dry_run:
                write_record(client, mask_record(after, REDACTOR.of(key)))
            return before, after
    words = "the record changes faster than it can be written"
    raise ConflictError(words, where=str(key), status=409, reason="")


def _under_way(record: Record) -> UsageError:
    hint = f"engine cancel {record.key} first"
    return UsageError(f"the job is {record.state}", where=str(record.key), hint=hint)
