"""The result of `reconcile --once`: JSON, table, and the exit code."""

from collections import Counter
from typing import TYPE_CHECKING

from msgspec.structs import replace

from engine import errors
from engine.cli.output import (
    format_rows,
    pluralise,
    sanitize_text,
    terminal_width,
    to_fields,
    to_json,
)
from engine.lifecycle.record import Record
from engine.prune.result import PruneAction, PruneResult
from engine.status.outcome import Reason, State
from engine.telemetry.redact import Redactor
from engine.values import map_text

if TYPE_CHECKING:
    from engine.reconcile.once import JobResult, OnceResult

_FIRST_SCREEN = 20
_COUNTED_FIRST = (State.FAILED, "Refused", "Forbidden", State.CANCELLED)
_HEAD = ("JOB", "STATE", "REASON", "ATTEMPTS", "TOOK", "MESSAGE")


def exit_code(result: "OnceResult") -> errors.ExitCode:
    """The highest of what happened; an interrupt counts before everything."""
    if result.interrupted:
        return errors.ExitCode.INTERRUPTED
    highest = errors.ExitCode.TIMEOUT if result.timed_out else errors.ExitCode.OK
    return max([highest, *map(job_exit_code, result.jobs)])


def mask_result(
    result: "OnceResult", pruned: PruneResult, redact: Redactor
) -> "tuple[OnceResult, PruneResult]":
    """Both with what is secret masked in messages, logs, errors and reasons of pruning."""
    jobs = []
    for job in result.jobs:
        mask = redact.of(job.job.key)
        record, error, log = map_text((job.record, job.error, job.log), mask)
        jobs.append(replace(job, record=record, error=error, log=log))
    return replace(result, jobs=tuple(jobs)), map_text(pruned, redact)


def result_json(result: "OnceResult", pruned: PruneResult) -> str:
    """The whole result, as in the contract of `-o json`."""
    from engine.cli.printers.record import record_json  # noqa: PLC0415 - a table needs none

    jobs = []
    for job in result.jobs:
        refused = refusal(job)
        entry = {
            "name": job.job.name,
            "namespace": job.job.namespace,
            "specHash": job.job.spec_hash,
            **record_json(current_record(job)),
            **({"state": refused[0], "reason": refused[1] or None} if refused else {}),
            "changed": job.changed,
            "outdatedFields": list(job.outdated),
        }
        if job.error is not None:
            entry["error"] = str(job.error)
        if job.log is not None:
            entry["log"] = to_fields(job.log, "attempt", "pod", "container", "lines")
        jobs.append(entry)
    failures = [job.error for job in result.jobs if job.error is not None] + [*pruned.errors]
    entries = [entry.to_json() for entry in pruned.entries]
    whole = {"jobs": jobs, "pruned": entries, "errors": [*map(str, failures)]}
    return to_json(whole, indent=2)


def result_table(result: "OnceResult", pruned: PruneResult, *, colour: bool = False) -> str:
    """One line a job, what failed last, below it the end of its log; then how many ended how.

    Of the jobs that succeeded, those beyond the first screen are only counted.
    """
    jobs = sorted(result.jobs, key=_attention)
    states = Counter(outcome_columns(job)[0] for job in jobs)
    uncounted = max(0, states[State.SUCCEEDED] - _FIRST_SCREEN)
    begin = states[State.SUCCEEDED] - uncounted
    shown = [*jobs[:begin], *jobs[begin + uncounted :]]
    lines = format_rows([_HEAD, *map(_row, shown)], width=terminal_width(), colour=colour, below=1)
    for number, job in enumerate(shown, start=1):
        if job.log is not None:
            for line in sanitize_text("\n".join(job.log.lines)).split("\n"):
                lines[number] += f"\n  {job.log.container} | {line}".rstrip()
        if words := left_words(job, result):
            lines[number] += f"\n  {words}"
    if uncounted:
        lines.insert(1 + begin, f"and {uncounted} more {State.SUCCEEDED}")
    return "\n".join((*lines, _summary(result, pruned, states)))


def _attention(job: "JobResult") -> int:
    """What a user acts on comes last, where a terminal and a CI system show it."""
    state = outcome_columns(job)[0]
    if state in _COUNTED_FIRST:
        return len(_COUNTED_FIRST) - _COUNTED_FIRST.index(state) + 1
    return int(state != State.SUCCEEDED)


def _row(job: "JobResult") -> tuple[str, ...]:
    record, took = current_record(job), ""
    if record is not None and record.started_at and record.finished_at:
        took = f"{(record.finished_at - record.started_at).total_seconds():.1f}s"
    attempts = str(len(record.attempts)) if record else "0"
    state, reason, message = outcome_columns(job)
    return (str(job.job.key), state, reason if reason != state else "", attempts, took, message)


def _summary(result: "OnceResult", pruned: PruneResult, states: Counter[str]) -> str:
    """How many jobs there are in each state, and whether anything was done."""
    names = [*_COUNTED_FIRST, *sorted(states.keys() - {*_COUNTED_FIRST, State.SUCCEEDED})]
    names.append(State.SUCCEEDED)
    words = {"-": "unknown"}
    counts = [f"{states[n]} {words.get(n, n).lower()}" for n in names if states[n]]
    jobs = ": ".join(filter(None, (pluralise(len(result.jobs), "job"), ", ".join(counts))))
    changed = [job for job in result.jobs if job.changed and not job.left]
    ran = sum(bool(job.record and job.record.attempts) for job in changed)
    done = f" ({ran} ran)" if ran else f", {len(changed)} changed"
    if not (changed or pruned.entries or any(job.error for job in result.jobs)):
        return f"{jobs}; nothing changed"
    gone = sum(entry.action is PruneAction.DELETED for entry in pruned.entries)
    pruning = f", {pluralise(gone, 'object')} pruned" if pruned.entries else ""
    return f"{jobs}{done}{pruning}"


def left_words(job: "JobResult", result: "OnceResult") -> str:
    """Of a job that had failed before: how long ago, and what shows its log and runs it again."""
    record, key = current_record(job), job.job.key
    if not job.left or record is None or result.as_of is None:
        return ""
    ended = record.explain_end(result.as_of)
    log = f" (its log: engine logs {key})" if record.started_at else ""
    return f"{key} {ended} and was left: engine rerun {key}{log}"


def interruption(result: "OnceResult") -> str:
    """Why the work ended early, and what is left of it."""
    why = "interrupted" if result.interrupted else "timeout"
    cancelled = sum(job.cancelled for job in result.jobs)
    under_way = sum(not job.over for job in result.jobs)
    parts = [f"{pluralise(cancelled, 'job')} cancelled"] if cancelled else []
    if under_way or not cancelled:
        left = f"{pluralise(under_way, 'job')} {'is' if under_way == 1 else 'are'} not over"
        parts.append(f"{left}; what has started goes on, and the next reconcile takes it up")
    return f"{why}: {', '.join(parts)}"


def current_record(job: "JobResult") -> Record | None:
    """The record, if it is of this revision of the spec."""
    record = job.record
    return record if record is not None and record.spec_hash == job.job.spec_hash else None


def refusal(job: "JobResult") -> tuple[str, str] | None:
    """State and reason of a job that was not let in; None for any other."""
    match job.error:
        case errors.SupersededError():
            return State.CANCELLED, Reason.SUPERSEDED
        case errors.ForbiddenError():
            return "Forbidden", ""
        case errors.OwnershipError() | errors.AdmissionRefusedError():
            return "Refused", ""
    return None


def outcome_columns(job: "JobResult") -> tuple[str, str, str]:
    """State, reason and message: the error's, where there is one."""
    record = current_record(job)
    message = str(job.error) if job.error else record.message if record else ""
    if refused := refusal(job):
        return *refused, message
    return (record.state if record else "-", (record and record.reason) or "", message)


def format_attempts(record: Record) -> list[str]:
    """A line for each attempt and its end, where there was more than one."""
    if len(record.attempts) < 2:  # noqa: PLR2004 - the message tells of the only one
        return []
    return [
        f"attempt {record.position(attempt)}, pod {attempt.pod}: {attempt.outcome or 'under way'}"
        f"{f': {attempt.message}' if attempt.message else ''}"
        for attempt in record.attempts
    ]


def job_exit_code(job: "JobResult") -> errors.ExitCode:
    """What it alone would end the command with."""
    if job.error is not None:
        return job.error.exit_code
    record = current_record(job)
    if record is not None and record.reason is not None:
        return record.reason.exit_code
    # A job that still queues when the engine is done with it was not let in: that is no success.
    # One that waits for another job ends as that does.
    queues = record is None or (
        record.state is State.QUEUED
        and record.open_attempt is None
        and not (record.message and not record.refused)
    )
    return errors.ExitCode.REFUSED if queues and job.over else errors.ExitCode.OK
