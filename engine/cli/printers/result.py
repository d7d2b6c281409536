"""The result of `reconcile --once` and the list of `status`: JSON, table, and the exit code."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from engine.cli.printers.prune import entry_json
from engine.cli.printers.table import format_table
from engine.decide.record import Attempt, Record
from engine.errors import ExitCode
from engine.prune.result import PruneAction, PruneReport
from engine.reconcile.once_result import JobResult, OnceResult
from engine.refs import JobKey
from engine.status.outcome import State
from engine.telemetry.redact import Redactor
from engine.times import format_time

_LONGEST_CELL = 100
NOTHING_PRUNED = PruneReport()


def exit_code(result: OnceResult) -> ExitCode:
    """The highest of what happened; an interrupt counts before everything."""
    if result.interrupted:
        return ExitCode.INTERRUPTED
    codes = [_job_code(job) for job in result.jobs]
    if result.timed_out:
        codes.append(ExitCode.TIMEOUT)
    return max(codes, default=ExitCode.OK)


def result_json(result: OnceResult, redact: Redactor, pruned: PruneReport = NOTHING_PRUNED) -> str:
    jobs = []
    for job in result.jobs:
        entry = {
            "name": job.job.name,
            "namespace": job.job.namespace,
            "specHash": job.job.spec_hash,
            **record_json(_current(job)),
            "changed": job.changed,
        }
        if job.error is not None:
            entry["error"] = str(job.error)
        jobs.append(entry)
    errors = [str(job.error) for job in result.jobs if job.error is not None]
    errors += [str(error) for error in pruned.errors]
    entries = [entry_json(entry) for entry in pruned.entries]
    whole = {"jobs": jobs, "pruned": entries, "errors": errors}
    return redact(json.dumps(whole, indent=2, ensure_ascii=False))


def result_table(result: OnceResult, redact: Redactor, pruned: PruneReport = NOTHING_PRUNED) -> str:
    """One line a job, and what the second run of the same specs is told: nothing changed."""
    rows = []
    for job in result.jobs:
        record = _current(job)
        state = record.state.value if record else "-"
        reason = record.reason.value if record and record.reason else ""
        message = str(job.error) if job.error else record.message if record else ""
        attempts = str(len(record.attempts)) if record else "0"
        rows.append((str(job.job.key), state, reason, attempts, _took(record), _short(message)))
    table = format_table(("JOB", "STATE", "REASON", "ATTEMPTS", "TOOK", "MESSAGE"), rows)
    count = len(result.jobs)
    changed = sum(job.changed for job in result.jobs)
    words = (
        f"{count} job{'' if count == 1 else 's'}, {changed} changed"
        if changed or pruned.entries
        else "nothing changed"
    )
    if pruned.entries:
        gone = sum(entry.action is PruneAction.DELETED for entry in pruned.entries)
        words += f", {gone} object{'' if gone == 1 else 's'} pruned"
    return redact(f"{table}\n{words}")


@dataclass(frozen=True, slots=True)
class Queue:
    """A place in the line for a quota: position counts from 1, the time is in seconds."""

    position: int
    length: int
    waited: float

    def __str__(self) -> str:
        return f"{_ordinal(self.position)} of {self.length} in the queue for {self.waited:.0f}s"


def queues(records: Iterable[Record], now: datetime) -> dict[JobKey, Queue]:
    """Places of all queued jobs: a line per namespace, in the order of submission."""
    lines: dict[str, list[tuple[datetime, JobKey]]] = {}
    for record in records:
        if record.state is State.QUEUED and record.queued_at is not None:
            lines.setdefault(record.key.namespace, []).append((record.queued_at, record.key))
    return {
        key: Queue(position, len(line), (now - since).total_seconds())
        for line in lines.values()
        for position, (since, key) in enumerate(sorted(line), start=1)
    }


def records_json(records: list[Record], places: Mapping[JobKey, Queue]) -> str:
    entries = [
        {
            "name": record.key.name,
            "namespace": record.key.namespace,
            "source": record.source,
            "specHash": record.spec_hash,
            **record_json(record),
            **_queue_json(places.get(record.key)),
            "history": [
                {
                    "run": past.run,
                    "state": past.state,
                    "reason": past.reason,
                    "message": past.message,
                    "finishedAt": format_time(past.finished_at),
                }
                for past in record.history
            ],
        }
        for record in records
    ]
    return json.dumps({"jobs": entries}, indent=2, ensure_ascii=False)


def records_table(records: list[Record], places: Mapping[JobKey, Queue]) -> str:
    rows = [
        (
            record.key.namespace,
            record.key.name,
            record.run,
            record.state.value,
            record.reason.value if record.reason else "",
            str(len(record.attempts)),
            format_time(record.finished_at or record.started_at or record.queued_at) or "",
            _short(
                f"{places[record.key]}: {record.message}"
                if record.key in places
                else record.message
            ),
        )
        for record in records
    ]
    head = ("NAMESPACE", "JOB", "RUN", "STATE", "REASON", "ATTEMPTS", "SINCE", "MESSAGE")
    return format_table(head, rows)


def record_json(record: Record | None) -> dict[str, Any]:
    """State and attempts, as in the contract of `-o json`."""
    if record is None:
        return {
            "state": State.QUEUED, "reason": None, "message": "", "exitCode": None,
            "startedAt": None, "finishedAt": None, "attempts": [],
        }  # fmt: skip
    return {
        "state": record.state,
        "reason": record.reason,
        "message": record.message,
        "exitCode": record.exit_code,
        "startedAt": format_time(record.started_at),
        "finishedAt": format_time(record.finished_at),
        "attempts": [_attempt_json(attempt) for attempt in record.attempts],
    }


def _queue_json(place: Queue | None) -> dict[str, Any]:
    if place is None:
        return {}
    return {"queue": {"position": place.position, "waitedSeconds": round(place.waited, 1)}}


def _ordinal(number: int) -> str:
    teens = number // 10 % 10 == 1
    return f"{number}{'th' if teens else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"


def _attempt_json(attempt: Attempt) -> dict[str, Any]:
    return {
        "number": attempt.number,
        "pod": attempt.pod,
        "uid": attempt.uid,
        "pullPolicies": dict(attempt.policies or {}),
        "outcome": attempt.outcome,
        "class": attempt.pull_class,
        "message": attempt.message,
        "exitCode": attempt.exit_code,
        "startedAt": format_time(attempt.started_at),
        "finishedAt": format_time(attempt.finished_at),
    }


def _current(job: JobResult) -> Record | None:
    """The record, if it is of this very spec and source."""
    record = job.record
    return record if record is not None and record.spec_hash == job.job.spec_hash else None


def _job_code(job: JobResult) -> ExitCode:
    if job.error is not None:
        return job.error.exit_code
    record = _current(job)
    if record is None or record.reason is None:
        return ExitCode.OK
    return record.reason.exit_code


def _took(record: Record | None) -> str:
    if record is None or record.started_at is None or record.finished_at is None:
        return ""
    return f"{(record.finished_at - record.started_at).total_seconds():.1f}s"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_CELL else line[: _LONGEST_CELL - 1] + "…"
