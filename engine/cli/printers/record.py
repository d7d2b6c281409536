"""A run record as JSON: the same in `reconcile --once`, `status` and `describe`."""

from typing import Any

from msgspec.structs import asdict

from engine.cli.output import to_fields
from engine.lifecycle.record import Attempt, Record, RunHistoryEntry

_OF_RUN = ("state", "reason", "message", "exit_code", "cause", "started_at", "finished_at")
_OF_ATTEMPT = ("pod", "uid", "outcome", "message", "exit_code", "started_at", "finished_at")
_OF_TRY = ("gives_up_at", "retry_at")


def record_json(record: Record | RunHistoryEntry | None) -> dict[str, Any]:
    """State and attempts, as in the contract of `-o json`."""
    run = record or RunHistoryEntry(run="")
    attempts = [_attempt_json(run.position(one), one) for one in run.attempts]
    return {**to_fields(run, *_OF_RUN), "attempts": attempts}


def _attempt_json(position: int, attempt: Attempt) -> dict[str, Any]:
    failures = [asdict(failure) for failure in attempt.failures]
    for failure in failures:
        failure["class"] = failure.pop("pull_class")
    return {
        "number": position,
        **to_fields(attempt, *_OF_ATTEMPT, *_OF_TRY),
        "pullPolicies": dict(attempt.policies),
        "class": attempt.pull_class,
        "failures": failures,
        "lastWords": [to_fields(words, "container", "message") for words in attempt.last_words],
    }
