"""The status of a JobSpec object: the run record, and what people and other tools read of it.

`kubectl wait` and kstatus read its conditions, which its state alone makes.
"""

import json
from collections.abc import Mapping
from datetime import datetime
from sys import intern
from typing import Any

from msgspec.structs import replace

from engine.api.model import JobObject
from engine.durations import format_duration
from engine.lifecycle.record import Record, Since
from engine.lifecycle.record_codec import encode_record, read_data
from engine.refs import JobKey
from engine.status.outcome import State
from engine.times import format_time

INVALID, SUSPENDED = "InvalidSpec", "Suspended"
"""States of an object that no run has."""
CLAIMED = "ClaimedBySource"
"""The reason where a file has the name."""
Refusals = Mapping[JobKey, tuple[JobObject, str]]
"""Objects that make no job, as they were read, and why."""
_UNDER_WAY = {"Ready": "False", "Reconciling": "True", "Finished": "False"}
_FAILED = {"Ready": "False", "Stalled": "True", "Finished": "True", "Failed": "True"}
CONDITIONS: Mapping[str, Mapping[str, str]] = {
    State.QUEUED: _UNDER_WAY,
    State.STARTING: _UNDER_WAY,
    State.RUNNING: _UNDER_WAY,
    State.SUCCEEDED: {"Ready": "True", "Finished": "True", "Complete": "True"},
    State.FAILED: _FAILED,
    State.CANCELLED: _FAILED,
    INVALID: _FAILED,
    SUSPENDED: {"Ready": "True", "Finished": "False", "Suspended": "True"},
}
"""Every state. What would be abnormal is absent rather than False."""
_KNOWN = {pair: pair for conditions in CONDITIONS.values() for pair in conditions.items()}
_MAX_MESSAGE = 1024
_SHOWN_ATTEMPTS = 10


def encode_status(record: Record, now: datetime) -> dict[str, Any]:
    """The status, of a record that has its object; `decode_status` reads the record back."""
    seen = record.object or JobObject("", -1)
    state, reason, message = _shown(record, seen)
    words = record.last.last_words if record.last is not None else ()
    shown = {
        **_head(state, reason, message, seen.generation, record.since, now),
        "lastWords": "\n".join(one.message for one in words) or None,
        "runHash": record.spec_hash,
        "startedAt": format_time(record.started_at),
        "finishedAt": format_time(record.finished_at),
        "took": _took(record),
        "attempts": [
            {
                "number": record.position(one),
                "pod": one.pod,
                "outcome": one.outcome or "",
                "message": cut(one.message),
            }
            for one in record.attempts[-_SHOWN_ATTEMPTS:]
        ],
        "record": json.loads(encode_record(record)),
    }
    return {key: value for key, value in shown.items() if value is not None}


def encode_refusal(
    status: Mapping[str, Any], generation: int, reason: str, message: str, now: datetime
) -> dict[str, Any]:
    """The status of an object of which nothing is started, whatever it ran before."""
    since = read_since(status)
    return {**status, **_head(INVALID, reason, message, generation, since, now)}


def decode_status(
    key: JobKey, status: Mapping[str, Any], seen: JobObject, version: str
) -> Record | None:
    """The record in the status of an object, None if it has none; `seen` is the object as it is.

    Errors: ValueError, RecursionError for what the engine can't have written.
    """
    if "record" not in status:
        return None
    record = read_data(key, status["record"], version)
    # A refusal, or a status without a generation, follows no generation.
    generation = status.get("observedGeneration") if status.get("state") != INVALID else -1
    followed = replace(seen, generation=generation if isinstance(generation, int) else -1)
    return replace(record, object=followed, since=read_since(status))


def _shown(record: Record, seen: JobObject) -> tuple[str, str, str]:
    is_new = not (record.state.is_final or record.attempts)
    if seen.suspend and is_new:
        return SUSPENDED, "", record.message
    if seen.outdated and record.state.is_final:
        return State.QUEUED, "", "its spec has changed"
    return record.state, record.reason or "", record.message


def _head(
    state: str, reason: str, message: str, generation: int, since: Since, now: datetime
) -> dict[str, Any]:
    """A condition whose status stays keeps the time of its change."""
    words = cut(message)
    return {
        "observedGeneration": generation,
        "state": state,
        "reason": reason,
        "message": words,
        "conditions": [
            {
                "type": kind,
                "status": status,
                "reason": reason or state,
                "message": words,
                "lastTransitionTime": since.get((kind, status)) or format_time(now),
                "observedGeneration": generation,
            }
            for kind, status in CONDITIONS[state].items()
        ],
    }


def _took(record: Record) -> str | None:
    if record.started_at is None or record.finished_at is None:
        return None
    seconds = (record.finished_at - record.started_at).total_seconds()
    return format_duration(round(max(0.0, seconds)))


def cut(message: str) -> str:
    return message if len(message) <= _MAX_MESSAGE else f"{message[: _MAX_MESSAGE - 1]}…"


def read_since(status: Mapping[str, Any]) -> Since:
    """What another writing of the status needs: objects share what is the same in all of them."""
    return {
        pair: intern(at)
        for one in status.get("conditions") or ()
        if isinstance(one, Mapping) and isinstance(at := one.get("lastTransitionTime"), str)
        if (pair := _KNOWN.get((str(one.get("type")), str(one.get("status")))))
    }
