"""The result of `reconcile --once`: JSON, table, and the exit code."""

from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from engine.cli.output import format_rows, pluralise, sanitize_text, terminal_width, to_json
from engine.errors import ExitCode
from engine.lifecycle.record import Record, map_messages
from engine.prune.result import PruneAction, PruneResult
from engine.telemetry.redact import Redactor

if TYPE_CHECKING:
    from engine.reconcile.once import JobResult, OnceResult

_HEAD = ("JOB", "STATE", "REASON", "ATTEMPTS", "TOOK", "MESSAGE")


def exit_code(result: "OnceResult") -> ExitCode:
    """The highest of what happened; an interrupt counts before everything."""
    if result.interrupted:
        return ExitCode.INTERRUPTED
    highest = ExitCode.TIMEOUT if result.timed_out else ExitCode.OK
    return max([highest, *map(job_exit_code, result.jobs)])


def mask_result(
    result: "OnceResult", pruned: PruneResult, redact: Redactor
) -> "tuple[OnceResult, PruneResult]":
    """Both with what is secret masked in messages, logs, errors and reasons of pruning."""
    jobs = []
    for job in result.jobs:
        # Lines of a log together: a secret may be of several.
        lines = tuple(redact("\n".join(job.log.lines)).splitlines()) if job.log else ()
        masked = replace(
            job,
            record=job.record and map_messages(job.record, redact),
            error=job.error and job.error.map_text(redact),
            log=job.log and replace(job.log, lines=lines),
        )
        jobs.append(masked)
    return replace(result, jobs=tuple(jobs)), pruned.map_text(redact)


def result_json(result: "OnceResult", pruned: PruneResult) -> str:
    """The whole result, as in the contract of `-o json`."""
    from engine.cli.printers.record import record_json  # noqa: PLC0415 - a table needs none

    jobs = []
    for job in result.jobs:
        entry = {
            "name": job.job.name,
            "namespace": job.job.namespace,
            "specHash": job.job.spec_hash,
            **record_json(current_record(job)),
            "changed": job.changed,
        }
        if job.error is not None:
            entry["error"] = str(job.error)
        if job.log is not None:
            entry["log"] = asdict(job.log)
        jobs.append(entry)
    errors = [job.error for job in result.jobs if job.error is not None] + [*pruned.errors]
    entries = [entry.to_json() for entry in pruned.entries]
    whole = {"jobs": jobs, "pruned": entries, "errors": [*map(str, errors)]}
    return to_json(whole, indent=2)


def result_table(result: "OnceResult", pruned: PruneResult, *, colour: bool = False) -> str:
    """One line a job, below it the end of its log if it failed, and at last what has changed."""
    rows = [_HEAD]
    changed = 0
    for job in result.jobs:
        record, took = current_record(job), ""
        if record is not None and record.started_at and record.finished_at:
            took = f"{(record.finished_at - record.started_at).total_seconds():.1f}s"
        attempts = str(len(record.attempts)) if record else "0"
        state, reason, message = outcome_columns(job)
        rows.append((str(job.job.key), state, reason, attempts, took, message))
        changed += job.changed
    lines = format_rows(rows, width=terminal_width(), colour=colour)
    for number, job in enumerate(result.jobs, start=1):
        if job.log is not None:
            for line in sanitize_text("\n".join(job.log.lines)).split("\n"):
                lines[number] += f"\n  {job.log.container} | {line}".rstrip()
    words = "nothing changed"
    if changed or pruned.entries:
        words = f"{pluralise(len(result.jobs), 'job')}, {changed} changed"
    if pruned.entries:
        gone = sum(entry.action is PruneAction.DELETED for entry in pruned.entries)
        words += f", {pluralise(gone, 'object')} pruned"
    return "\n".join((*lines, words))


def current_record(job: "JobResult") -> Record | None:
    """The record, if it is of this revision of the spec."""
    record = job.record
    return record if record is not None and record.spec_hash == job.job.spec_hash else None


def outcome_columns(job: "JobResult") -> tuple[str, str, str]:
    """State, reason and message: the error's, where there is one."""
    record = current_record(job)
    message = str(job.error) if job.error else record.message if record else ""
    return (record.state if record else "-", (record and record.reason) or "", message)


def format_attempts(record: Record) -> list[str]:
    """A line for each attempt and its end, where there was more than one."""
    if len(record.attempts) < 2:  # noqa: PLR2004 - the message tells of the only one
        return []
    return [
        f"attempt {attempt.number}, pod {attempt.pod}: {attempt.outcome or 'under way'}"
        f"{f': {attempt.message}' if attempt.message else ''}"
        for attempt in record.attempts
    ]


def job_exit_code(job: "JobResult") -> ExitCode:
    """What it alone would end the command with."""
    if job.error is not None:
        return job.error.exit_code
    record = current_record(job)
    if record is None or record.reason is None:
        return ExitCode.OK
    return record.reason.exit_code
