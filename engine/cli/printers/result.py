"""The result of `reconcile --once`: JSON, table, and the exit code."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from engine.cli.printers.table import format_rows, terminal_width
from engine.cli.printers.text import pluralise, sanitize_text, to_json
from engine.errors import ExitCode
from engine.lifecycle.record import Record, map_messages
from engine.prune.result import PruneAction, PruneResult
from engine.reconcile.once_result import JobResult, LogEnd, OnceResult
from engine.telemetry.redact import Redactor

NOTHING_PRUNED = PruneResult()


def exit_code(result: OnceResult) -> ExitCode:
    """The highest of what happened; an interrupt counts before everything."""
    if result.interrupted:
        return ExitCode.INTERRUPTED
    codes = [job_exit_code(job) for job in result.jobs]
    if result.timed_out:
        codes.append(ExitCode.TIMEOUT)
    return max(codes, default=ExitCode.OK)


def mask_result(
    result: OnceResult, pruned: PruneResult, redact: Redactor
) -> tuple[OnceResult, PruneResult]:
    """Both with what is secret masked in messages, logs, errors and reasons of pruning."""
    jobs = [
        replace(
            job,
            record=job.record and map_messages(job.record, redact),
            error=job.error and job.error.map_text(redact),
            log=job.log and replace(job.log, lines=_mask_lines(job.log.lines, redact)),
        )
        for job in result.jobs
    ]
    return replace(result, jobs=tuple(jobs)), pruned.map_text(redact)


def result_json(result: OnceResult, pruned: PruneResult = NOTHING_PRUNED) -> str:
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
            entry["log"] = _log_json(job.log)
        jobs.append(entry)
    errors = [str(job.error) for job in result.jobs if job.error is not None]
    errors += [str(error) for error in pruned.errors]
    entries = [entry.to_json() for entry in pruned.entries]
    whole = {"jobs": jobs, "pruned": entries, "errors": errors}
    return to_json(whole, indent=2)


def result_table(
    result: OnceResult, pruned: PruneResult = NOTHING_PRUNED, *, colour: bool = False
) -> str:
    """One line a job, below it the end of its log if it failed, and at last what has changed."""
    rows = []
    for job in result.jobs:
        record = current_record(job)
        state, reason, message = outcome_columns(job)
        attempts = str(len(record.attempts)) if record else "0"
        rows.append((str(job.job.key), state, reason, attempts, _took(record), message))
    head = ("JOB", "STATE", "REASON", "ATTEMPTS", "TOOK", "MESSAGE")
    first, *others = format_rows([head, *rows], width=terminal_width(), colour=colour)
    under = (_log_text(job) for job in result.jobs)
    table = first + "".join(f"\n{row}{log}" for row, log in zip(others, under, strict=True))
    count = len(result.jobs)
    changed = sum(job.changed for job in result.jobs)
    words = (
        f"{pluralise(count, 'job')}, {changed} changed"
        if changed or pruned.entries
        else "nothing changed"
    )
    if pruned.entries:
        gone = sum(entry.action is PruneAction.DELETED for entry in pruned.entries)
        words += f", {pluralise(gone, 'object')} pruned"
    return f"{table}\n{words}"


def _mask_lines(lines: Iterable[str], redact: Redactor) -> tuple[str, ...]:
    """Together: a secret may be of several lines."""
    return tuple(redact("\n".join(lines)).splitlines())


def _log_json(log: LogEnd) -> dict[str, Any]:
    return {
        "attempt": log.attempt,
        "pod": log.pod,
        "container": log.container,
        "lines": list(log.lines),
    }


def _log_text(job: JobResult) -> str:
    """The end of the log, indented, with a newline before each line; "" without one."""
    if job.log is None:
        return ""
    lines = sanitize_text("\n".join(job.log.lines)).split("\n")
    return "".join(f"\n  {job.log.container} | {line}".rstrip() for line in lines)


def current_record(job: JobResult) -> Record | None:
    """The record, if it is of this revision of the spec."""
    record = job.record
    return record if record is not None and record.spec_hash == job.job.spec_hash else None


def outcome_columns(job: JobResult) -> tuple[str, str, str]:
    """State, reason and message: the error's, where there is one."""
    record = current_record(job)
    reason = record.reason.value if record and record.reason else ""
    message = str(job.error) if job.error else record.message if record else ""
    return record.state.value if record else "-", reason, message


def format_attempts(record: Record) -> list[str]:
    """A line for each attempt and its end, where there was more than one."""
    if len(record.attempts) < 2:  # noqa: PLR2004 - the message tells of the only one
        return []
    return [
        f"attempt {attempt.number}, pod {attempt.pod}: {attempt.outcome or 'under way'}"
        f"{f': {attempt.message}' if attempt.message else ''}"
        for attempt in record.attempts
    ]


def job_exit_code(job: JobResult) -> ExitCode:
    """What it alone would end the command with."""
    if job.error is not None:
        return job.error.exit_code
    record = current_record(job)
    if record is None or record.reason is None:
        return ExitCode.OK
    return record.reason.exit_code


def _took(record: Record | None) -> str:
    if record is None or record.started_at is None or record.finished_at is None:
        return ""
    return f"{(record.finished_at - record.started_at).total_seconds():.1f}s"
