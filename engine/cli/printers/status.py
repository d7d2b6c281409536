"""The output of `engine status`: jobs as JSON or as a table, and how fresh that is."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from engine.cli.output import format_age
from engine.cli.printers.record import record_json
from engine.inspect.view import JobView, Overview
from engine.lifecycle.orphan import orphaned_since
from engine.refs import JobKey
from engine.status.outcome import State
from engine.times import format_time

UNKNOWN = "Unknown"
"""State of a job whose record can't be read."""
_HEAD = ("NAMESPACE", "JOB", "STATE", "REASON", "ATTEMPTS", "AGE", "POD")
_WIDE = ("NODE", "RUN", "SOURCE", "SINCE")


def overview_data(overview: Overview, jobs: Iterable[JobView]) -> dict[str, Any]:
    """The jobs with their history, as in the contract of `-o json`; why others are broken."""
    engines = overview.holders and [
        {
            "source": engine.source,
            "namespace": engine.namespace,
            "holder": engine.holder,
            "renewedAt": format_time(engine.renewed_at),
            "follows": engine.is_alive,
        }
        for engine in overview.holders
    ]
    return {
        "asOf": format_time(overview.as_of),
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
        "specHash": record.spec_hash if record else None,
        **record_json(record),
        "pod": _pod_name(job) or None,
        "node": _node(job) or None,
        "recordedAt": format_time(job.written_at),
        "specGoneSince": format_time(orphaned_since(record.annotations)) if record else None,
        "history": [
            {"run": past.run, **record_json(past)} for past in (record.history if record else ())
        ],
    }
    if queue is not None:
        entry["queue"] = {"position": queue.position, "waitedSeconds": round(queue.waited, 1)}
    if job.status is not None:
        entry["observed"] = {
            "state": job.status.state,
            "reason": job.status.reason,
            "message": job.status.message,
            "recorded": job.status.is_recorded,
        }
    if job.error is not None:
        entry |= {"state": UNKNOWN, "error": str(job.error)}
    return entry


def overview_rows(
    jobs: Iterable[JobView], now: datetime, gone: Iterable[JobKey] = (), *, wide: bool = False
) -> list[tuple[str, ...]]:
    """The head, a row for each job, and one for each whose record is gone."""
    rows = []
    for job in jobs:
        record, status = job.record, job.status
        row = {"NAMESPACE": job.key.namespace, "JOB": job.key.name, "STATE": UNKNOWN}
        if record is None or status is None:
            rows.append(row | {"MESSAGE": job.error.cause if job.error else ""})
            continue
        message = status.message
        if job.queue is not None:
            message = f"{job.queue}: {message}"
        elif not status.is_recorded:
            recorded = f"not recorded yet, the record says {record.state}"
            message = f"{message} ({recorded})" if message else recorded
        since = record.finished_at or record.started_at or record.queued_at or job.written_at
        row |= {
            "STATE": status.state,
            "REASON": status.reason or "",
            "ATTEMPTS": str(len(record.attempts)),
            "AGE": format_age((now - since).total_seconds()) if since is not None else "",
            "POD": _pod_name(job),
            "NODE": _node(job),
            "RUN": record.run,
            "SOURCE": record.source,
            "SINCE": format_time(since) or "",
            "MESSAGE": message,
        }
        rows.append(row)
    for key in gone:
        row = {"NAMESPACE": key.namespace, "JOB": key.name, "STATE": "Gone"}
        rows.append(row | {"MESSAGE": "its record was deleted"})
    head = (*_HEAD, *(_WIDE if wide else ()), "MESSAGE")
    return [head, *(tuple(row.get(name, "") for name in head) for row in rows)]


def failed_first(jobs: Iterable[JobView]) -> list[JobView]:
    """Jobs that failed or can't be read, then the others, by namespace and name."""
    return sorted(
        jobs,
        key=lambda job: (job.status is not None and job.status.state is not State.FAILED, job.key),
    )


def freshness_lines(overview: Overview, jobs: Sequence[JobView]) -> list[str]:
    """The age of the data, and for each source whether an engine follows it."""
    at = str(format_time(overview.as_of.replace(microsecond=0))).replace(".000Z", "Z")
    found = "records" if overview.unread else "records and pods"
    sources = sorted({job.record.source for job in jobs if job.record})
    leaders = [f"source {source}: {format_leader(overview, source)}" for source in sources]
    return [*overview.unread, f"as of {at}, {found}", *leaders]


def format_leader(overview: Overview, source: str) -> str:
    """The engine that follows the jobs of a source, and when it last renewed its Lease."""
    if overview.holders is None:
        return "whether an engine follows is not known"
    found = [holder for holder in overview.holders if holder.source == source]
    if not found:
        return "no engine holds its Lease"
    lease = max(found, key=lambda holder: holder.is_alive)
    ago = ""
    if lease.renewed_at:
        ago = f", renewed {format_age((overview.as_of - lease.renewed_at).total_seconds())} ago"
    if lease.is_alive:
        return f"followed by {lease.holder}{ago}"
    if not lease.holder:
        return "no engine holds its Lease, which was released"
    return f"no engine follows: the Lease of {lease.holder} has expired{ago}"


def _pod_name(job: JobView) -> str:
    return job.record.last.pod if job.record and job.record.last else ""


def _node(job: JobView) -> str:
    return str((job.pod.get("spec") or {}).get("nodeName") or "") if job.pod else ""
