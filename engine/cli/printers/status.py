"""The output of `engine status`: jobs as JSON or as a table, and how fresh that is."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from engine.cli.output import to_fields
from engine.cli.printers.record import record_json
from engine.durations import format_age
from engine.errors import UsageError
from engine.inspect.view import JobView, Overview
from engine.lifecycle.object_status import INVALID
from engine.lifecycle.orphan import orphaned_since
from engine.lifecycle.outdated import with_outdated
from engine.lifecycle.retry import time_left
from engine.refs import JobKey
from engine.status.drain import drain_words
from engine.status.outcome import State
from engine.times import format_time

_RANKS = {State.FAILED: 0, State.CANCELLED: 2, State.SUCCEEDED: 3}
"""The order of jobs; those that are not over come after those that failed."""
_HEAD = ("JOB", "STATE", "REASON", "ATTEMPTS", "AGE")
_WIDE = ("POD", "NODE", "RUN", "SOURCE", "ENGINE", "SINCE")


def error_state(job: JobView) -> str:
    """State of a job whose JobSpec object is invalid, or whose record can't be read."""
    return INVALID if isinstance(job.error, UsageError) else "Unknown"


def overview_data(overview: Overview, jobs: Iterable[JobView]) -> dict[str, Any]:
    """The jobs with their history, as in the contract of `-o json`; why others are broken."""
    holders = overview.holders.found
    engines = holders and [
        {**to_fields(one, "source", "namespace", "holder", "renewed_at"), "follows": one.is_alive}
        for one in holders
    ]
    return {
        "asOf": overview.as_of,
        "engines": engines,
        "unread": list(overview.unread),
        "jobs": [*map(job_json, jobs)],
    }


def job_json(job: JobView) -> dict[str, Any]:
    """One job; `state` and its kin are the record's, `observed` is what its pod shows."""
    record, queue = job.record, job.queue
    entry: dict[str, Any] = {
        "name": job.key.name,
        "namespace": job.key.namespace,
        "source": record.source if record else None,
        "object": record.object.uid if record and record.object else None,
        "specHash": record.spec_hash if record else None,
        **record_json(record),
        "pod": job.pod_name or None,
        "node": _node(job) or None,
        "drain": drain_words(job.pod) or None,
        "engine": job.engine or None,
        "recordedAt": job.written_at,
        "specGoneSince": orphaned_since(record.annotations) if record else None,
        "history": [
            {"run": past.run, **record_json(past)} for past in (record.history if record else ())
        ],
    }
    if job.outdated is not None:
        entry["outdatedFields"] = list(job.outdated)
    if queue is not None:
        entry["queue"] = {"position": queue.position, "waitedSeconds": round(queue.waited, 1)}
    if job.status is not None:
        seen = to_fields(job.status, "state", "reason", "message")
        entry["observed"] = {**seen, "recorded": job.status.is_recorded}
    if job.error is not None:
        entry |= {"state": error_state(job), "error": str(job.error)}
    return entry


def overview_rows(
    jobs: Iterable[JobView], now: datetime, gone: Iterable[JobKey] = (), *, wide: bool = False
) -> list[tuple[str, ...]]:
    """The head, a row for each job, and one for each whose record is gone."""
    rows = []
    for job in jobs:
        record, status = job.record, job.status
        row = {"JOB": str(job.key), "STATE": error_state(job)}
        if record is None or status is None or job.error is not None:
            rows.append(row | {"MESSAGE": job.error.cause if job.error else ""})
            continue
        message, reason = status.message, str(status.reason or "")
        if message and status.is_recorded:
            message += time_left(record, now)
        message = with_outdated(message, job.outdated or ())
        message = "; ".join(filter(None, (message, drain_words(job.pod) if wide else "")))
        if job.queue is not None:
            message = f"{job.queue}: {message}"
        elif not status.is_recorded:
            recorded = f"not recorded yet, the record says {record.state}"
            message = f"{message} ({recorded})" if message else recorded
        since = record.finished_at or record.started_at or record.queued_at or job.written_at
        row |= {
            "STATE": status.state,
            "REASON": reason if reason != status.state.value else "",
            "ATTEMPTS": str(len(record.attempts)),
            "AGE": format_age((now - since).total_seconds()) if since is not None else "",
            "POD": job.pod_name,
            "NODE": _node(job),
            "RUN": record.run,
            "SOURCE": record.source_words,
            "ENGINE": job.engine,
            "SINCE": format_time(since) or "",
            "MESSAGE": message,
        }
        rows.append(row)
    for key in gone:
        row = {"JOB": str(key), "STATE": "Gone"}
        rows.append(row | {"MESSAGE": "its record was deleted"})
    head = (*_HEAD, *(_WIDE if wide else ()), "MESSAGE")
    return [head, *(tuple(row.get(name, "") for name in head) for row in rows)]


def succeeded_last(jobs: Sequence[JobView]) -> list[JobView]:
    """Jobs that failed or can't be read, those that are not over, and then those that are; by
    namespace and name.
    """
    fine = {job.key: job.status.state for job in jobs if job.status and not job.error}
    return sorted(jobs, key=lambda job: (_RANKS.get(fine.get(job.key, State.FAILED), 1), job.key))


def source_lines(overview: Overview, jobs: Iterable[JobView]) -> list[str]:
    """What could not be read; for each source with jobs that are not over, who follows it."""
    records = (job.record for job in jobs if job.record)
    sources = sorted({record.source for record in records if not record.state.is_final})
    return [*overview.unread, *map(overview.holders.words, sources)]


def _node(job: JobView) -> str:
    return str((job.pod.get("spec") or {}).get("nodeName") or "") if job.pod else ""
