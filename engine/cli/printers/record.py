"""A run record as JSON: the same in `reconcile --once`, `status` and `describe`."""

from dataclasses import asdict
from typing import Any

from engine.lifecycle.record import Attempt, Record, RunHistoryEntry
from engine.status.outcome import State
from engine.times import format_time


def record_json(record: Record | RunHistoryEntry | None) -> dict[str, Any]:
    """State and attempts, as in the contract of `-o json`."""
    return {
        "state": record.state if record else State.QUEUED,
        "reason": record.reason if record else None,
        "message": record.message if record else "",
        "exitCode": record.exit_code if record else None,
        "cause": record.cause if record else "",
        "startedAt": format_time(record.started_at) if record else None,
        "finishedAt": format_time(record.finished_at) if record else None,
        "attempts": [_attempt_json(record.position(one), one) for one in record.attempts]
        if record
        else [],
    }


def _attempt_json(position: int, attempt: Attempt) -> dict[str, Any]:
    failures = []
    for failure in attempt.failures:
        entry = asdict(failure)
        entry["class"] = entry.pop("pull_class")
        failures.append(entry)
    return {
        "number": position,
        "pod": attempt.pod,
        "uid": attempt.uid,
        "pullPolicies": dict(attempt.policies or {}),
        "outcome": attempt.outcome,
        "class": attempt.pull_class,
        "message": attempt.message,
        "failures": failures,
        "exitCode": attempt.exit_code,
        "lastWords": [{"container": w.container, "message": w.message} for w in attempt.last_words],
        "startedAt": format_time(attempt.started_at),
        "finishedAt": format_time(attempt.finished_at),
        "givesUpAt": format_time(attempt.gives_up_at),
        "retryAt": format_time(attempt.retry_at),
    }
