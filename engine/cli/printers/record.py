"""A run record as JSON: the same in `reconcile --once`, `status` and `describe`."""

from typing import Any

from engine.lifecycle.record import Attempt, Record, RunHistoryEntry
from engine.status.outcome import State
from engine.times import format_time


def record_json(record: Record | RunHistoryEntry | None) -> dict[str, Any]:
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
        "attempts": [attempt_json(attempt) for attempt in record.attempts],
    }


def attempt_json(attempt: Attempt) -> dict[str, Any]:
    """One attempt, as there."""
    return {
        "number": attempt.number,
        "pod": attempt.pod,
        "uid": attempt.uid,
        "pullPolicies": dict(attempt.policies),
        "outcome": attempt.outcome,
        "class": attempt.pull_class,
        "message": attempt.message,
        "failures": [
            {
                "container": failure.container,
                "image": failure.image,
                "reason": failure.reason,
                "class": failure.pull_class,
                "message": failure.message,
            }
            for failure in attempt.failures
        ],
        "exitCode": attempt.exit_code,
        "startedAt": format_time(attempt.started_at),
        "finishedAt": format_time(attempt.finished_at),
    }
