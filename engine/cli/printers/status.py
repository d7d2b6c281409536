"""What `engine status` prints: records as JSON or as a table, and positions in the quota queue."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from engine.cli.printers.result import record_json
from engine.cli.printers.text import format_table, message_cell, to_json
from engine.decide.record import Record
from engine.errors import BrokenRecordError
from engine.refs import JobKey
from engine.status.outcome import State
from engine.times import format_time

_UNKNOWN = "Unknown"
"""State of a job whose record can't be read."""
Broken = Mapping[JobKey, BrokenRecordError]


@dataclass(frozen=True, slots=True)
class QueuePosition:
    """Where a job stands in the queue for a quota: counts from 1; waited is in seconds."""

    position: int
    length: int
    waited: float

    def __str__(self) -> str:
        return f"{_ordinal(self.position)} of {self.length} in the queue for {self.waited:.0f}s"


def queue_positions(records: Iterable[Record], now: datetime) -> dict[JobKey, QueuePosition]:
    """Positions of all jobs that wait for a quota: a queue per namespace, by submission."""
    lines: dict[str, list[tuple[datetime, JobKey]]] = {}
    for record in records:
        if record.state is State.QUEUED and record.queued_at and record.open_attempt is None:
            lines.setdefault(record.key.namespace, []).append((record.queued_at, record.key))
    return {
        key: QueuePosition(position, len(line), (now - since).total_seconds())
        for line in lines.values()
        for position, (since, key) in enumerate(sorted(line), start=1)
    }


def records_json(
    records: Iterable[Record], positions: Mapping[JobKey, QueuePosition], broken: Broken
) -> str:
    """The records with their history, as in the contract of `-o json`; why others are broken."""
    entries: list[dict[str, Any]] = [
        {
            "name": record.key.name,
            "namespace": record.key.namespace,
            "source": record.source,
            "specHash": record.spec_hash,
            **record_json(record),
            **_queue_json(positions.get(record.key)),
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
    entries += [
        {
            "name": key.name,
            "namespace": key.namespace,
            "source": None,
            "specHash": None,
            **record_json(None),
            "state": _UNKNOWN,
            "error": str(error),
            "history": [],
        }
        for key, error in broken.items()
    ]
    entries.sort(key=lambda entry: (entry["namespace"], entry["name"]))
    return to_json({"jobs": entries}, indent=2)


def records_table(
    records: Iterable[Record], positions: Mapping[JobKey, QueuePosition], broken: Broken
) -> str:
    """One line a job."""
    rows = [
        (
            record.key.namespace,
            record.key.name,
            record.run,
            record.state.value,
            record.reason.value if record.reason else "",
            str(len(record.attempts)),
            format_time(record.finished_at or record.started_at or record.queued_at) or "",
            message_cell(
                f"{positions[record.key]}: {record.message}"
                if record.key in positions
                else record.message
            ),
        )
        for record in records
    ]
    rows += [
        (key.namespace, key.name, "", _UNKNOWN, "", "", "", message_cell(error.cause))
        for key, error in broken.items()
    ]
    head = ("NAMESPACE", "JOB", "RUN", "STATE", "REASON", "ATTEMPTS", "SINCE", "MESSAGE")
    return format_table(head, sorted(rows))


def _queue_json(position: QueuePosition | None) -> dict[str, Any]:
    if position is None:
        return {}
    return {"queue": {"position": position.position, "waitedSeconds": round(position.waited, 1)}}


def _ordinal(number: int) -> str:
    teens = number // 10 % 10 == 1
    return f"{number}{'th' if teens else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"
