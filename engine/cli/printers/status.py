"""What `engine status` prints: jobs as JSON or as a table, and how much of it is known."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from engine.cli.printers.record import attempt_json, record_json
from engine.cli.printers.text import format_age
from engine.decide.absence import gone_since
from engine.decide.follower import Follower
from engine.decide.standing import Standing
from engine.reconcile.job_overview import JobStatus, Overview, QueuePosition
from engine.refs import JobKey
from engine.status.outcome import State
from engine.times import format_time

UNKNOWN = "Unknown"
"""State of a job whose record can't be read."""
_GONE = "Gone"
"""State of a job whose record was there a moment ago."""
_HEAD = ("NAMESPACE", "JOB", "STATE", "REASON", "ATTEMPTS", "AGE", "POD", "MESSAGE")
_WIDE = ("NAMESPACE", "JOB", "STATE", "REASON", "ATTEMPTS", "AGE", "POD", "NODE", "RUN", "SOURCE",
         "SINCE", "MESSAGE")  # fmt: skip


def overview_data(overview: Overview, jobs: Iterable[JobStatus]) -> dict[str, Any]:
    """The jobs with their history, as in the contract of `-o json`; why others are broken."""
    engines = overview.followers
    return {
        "asOf": format_time(overview.as_of),
        "engines": None if engines is None else [_engine_json(one) for one in engines],
        "unread": list(overview.unread),
        "jobs": [job_json(job) for job in jobs],
    }


def job_json(job: JobStatus) -> dict[str, Any]:
    """One job; `state` and its kin are the record's, `observed` is what its pod shows."""
    record = job.record
    entry: dict[str, Any] = {
        "name": job.key.name,
        "namespace": job.key.namespace,
        "source": record.source if record else None,
        "specHash": record.spec_hash if record else None,
        **record_json(record),
        **_queue_json(job.queue),
        "pod": _pod_name(job) or None,
        "node": _node(job) or None,
        "recordedAt": format_time(job.written_at),
        "specGoneSince": format_time(gone_since(record.annotations)) if record else None,
        "history": [
            {
                "run": past.run,
                "state": past.state,
                "reason": past.reason,
                "message": past.message,
                "exitCode": past.exit_code,
                "startedAt": format_time(past.started_at),
                "finishedAt": format_time(past.finished_at),
                "attempts": [attempt_json(attempt) for attempt in past.attempts],
            }
            for past in (record.history if record else ())
        ],
    }
    if job.standing is not None:
        entry["observed"] = {
            "state": job.standing.state,
            "reason": job.standing.reason,
            "message": job.standing.message,
            "recorded": job.standing.is_recorded,
        }
    if job.error is not None:
        entry |= {"state": UNKNOWN, "error": str(job.error)}
    return entry


def overview_rows(
    jobs: Iterable[JobStatus], now: datetime, gone: Iterable[JobKey] = (), *, wide: bool = False
) -> list[tuple[str, ...]]:
    """The head, a row a job, and one for each whose record is gone."""
    head = _WIDE if wide else _HEAD
    rows = [_row(job, now, wide=wide) for job in jobs]
    words = "its record was deleted"
    return [head, *rows, *(_short_row(key, _GONE, words, wide=wide) for key in gone)]


def failed_first(jobs: Iterable[JobStatus]) -> list[JobStatus]:
    """Those that somebody has to look at, then the others, by namespace and name."""
    return sorted(jobs, key=lambda job: (not _has_failed(job), job.key))


def knowledge_lines(overview: Overview, jobs: Sequence[JobStatus]) -> list[str]:
    """How old what was printed is, and whether anybody goes on with it: a line for each source."""
    lines = list(overview.unread)
    at = str(format_time(overview.as_of.replace(microsecond=0))).replace(".000Z", "Z")
    lines.append(f"as of {at}, {'records' if overview.unread else 'records and pods'}")
    for source in sorted({job.record.source for job in jobs if job.record}):
        mine = [job for job in jobs if job.record and job.record.source == source]
        lines.append(
            f"source {source}: {source_words(overview, source)}{_left_over(overview, mine)}"
        )
    return lines


def source_words(overview: Overview, source: str) -> str:
    """Who follows the jobs of a source, and when that was last heard of."""
    if overview.followers is None:
        return "whether an engine follows is not known"
    found = [follower for follower in overview.followers if follower.source == source]
    found.sort(key=lambda follower: not follower.is_alive)
    return _follower_words(found[0], overview.as_of) if found else "no engine holds its Lease"


def _follower_words(follower: Follower, now: datetime) -> str:
    ago = ""
    if follower.renewed_at is not None:
        seconds = (now - follower.renewed_at).total_seconds()
        ago = f", renewed {format_age(seconds)} ago"
    if follower.is_alive:
        return f"followed by {follower.holder}{ago}"
    if not follower.holder:
        return "no engine holds its Lease, which was given up"
    return f"no engine follows: {follower.holder} holds the Lease no longer{ago}"


def _left_over(overview: Overview, jobs: Sequence[JobStatus]) -> str:
    """Of jobs that nobody goes on with: how many, and since when nothing was recorded of them."""
    source = jobs[0].record.source if jobs[0].record else ""
    open_jobs = [job for job in jobs if job.record and not job.record.state.is_final]
    if not open_jobs or overview.is_followed(source):
        return ""
    count = f"{len(open_jobs)} not over"
    times = [job.written_at for job in open_jobs if job.written_at is not None]
    if not times:
        return f"; {count}"
    seconds = (overview.as_of - max(times)).total_seconds()
    return f"; {count}, last recorded {format_age(seconds)} ago"


def _row(job: JobStatus, now: datetime, *, wide: bool) -> tuple[str, ...]:
    record, standing = job.record, job.standing
    if record is None or standing is None:
        return _short_row(job.key, UNKNOWN, job.error.cause if job.error else "", wide=wide)
    since = record.finished_at or record.started_at or record.queued_at or job.written_at
    age = format_age((now - since).total_seconds()) if since is not None else ""
    more = (_node(job), record.run, record.source, format_time(since) or "") if wide else ()
    return (
        *_names(job),
        standing.state.value,
        standing.reason.value if standing.reason else "",
        str(len(record.attempts)),
        age,
        _pod_name(job),
        *more,
        _message(job, standing),
    )


def _short_row(key: JobKey, state: str, message: str, *, wide: bool) -> tuple[str, ...]:
    gap = ("",) * (len(_WIDE if wide else _HEAD) - 4)
    return (key.namespace, key.name, state, *gap, message)


def _message(job: JobStatus, standing: Standing) -> str:
    message = standing.message
    if job.queue is not None:
        return f"{job.queue}: {message}"
    if standing.is_recorded:
        return message
    recorded = f"not recorded yet, the record says {job.record.state if job.record else ''}"
    if standing.may_be_retried:
        recorded += "; another attempt follows if its retry allows one"
    return f"{message} ({recorded})" if message else recorded


def _names(job: JobStatus) -> tuple[str, str]:
    return job.key.namespace, job.key.name


def _pod_name(job: JobStatus) -> str:
    return job.record.last.pod if job.record and job.record.last else ""


def _node(job: JobStatus) -> str:
    return str((job.pod.get("spec") or {}).get("nodeName") or "") if job.pod else ""


def _has_failed(job: JobStatus) -> bool:
    return job.standing is None or job.standing.state is State.FAILED


def _engine_json(follower: Follower) -> dict[str, Any]:
    return {
        "source": follower.source,
        "namespace": follower.namespace,
        "holder": follower.holder,
        "renewedAt": format_time(follower.renewed_at),
        "follows": follower.is_alive,
    }


def _queue_json(position: QueuePosition | None) -> dict[str, Any]:
    if position is None:
        return {}
    return {"queue": {"position": position.position, "waitedSeconds": round(position.waited, 1)}}
