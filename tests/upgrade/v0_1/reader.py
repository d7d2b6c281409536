"""How 0.1 reads a run record, and what it does next about a job that has one.

Frozen: a copy of engine/decide/record.py, engine/cluster/records.py and what they need, as they
were in commit 02fb5ca. It is evidence, not code: a later record that it can't read is wrong,
never this file.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

MANAGED_BY = "app.kubernetes.io/managed-by"
MANAGER = "engine"
JOB = "jobs.engine/job"
COMPONENT = "jobs.engine/component"
RECORD = "record"
KEY = "record.json"
KEPT_RUNS = 5
RUN_LENGTH = 8


class State(StrEnum):
    QUEUED = "Queued"
    STARTING = "Starting"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    CANCELLED = "Cancelled"

    @property
    def is_final(self) -> bool:
        return self in (State.SUCCEEDED, State.FAILED, State.CANCELLED)


class Reason(StrEnum):
    SUCCEEDED = "Succeeded"
    SCRIPT_FAILED = "ScriptFailed"
    DEADLINE_EXCEEDED = "DeadlineExceeded"
    START_TIMEOUT = "StartTimeout"
    IMAGE_PULL_FAILED = "ImagePullFailed"
    INVALID_IMAGE = "InvalidImage"
    CONTAINER_CONFIG_ERROR = "ContainerConfigError"
    QUOTA_EXCEEDED = "QuotaExceeded"
    ADMISSION_REFUSED = "AdmissionRefused"
    POD_DELETED = "PodDeleted"
    EVICTED = "Evicted"
    NODE_LOST = "NodeLost"
    OOM_KILLED = "OOMKilled"
    CANCELLED = "Cancelled"


class PullClass(StrEnum):
    TRANSIENT = "transient"
    NOT_FOUND = "notFound"
    UNAUTHORIZED = "unauthorized"
    OTHER = "other"


@dataclass(frozen=True, slots=True, order=True)
class JobKey:
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class PullFailure:
    container: str
    reason: str
    pull_class: PullClass
    message: str
    advances: bool = True


@dataclass(frozen=True, slots=True)
class Attempt:
    number: int
    pod: str
    uid: str = ""
    policies: Mapping[str, str] | None = None
    claimed_at: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    outcome: Reason | None = None
    message: str = ""
    exit_code: int | None = None
    failures: tuple[PullFailure, ...] = ()

    @property
    def is_open(self) -> bool:
        return self.outcome is None

    @property
    def pull_class(self) -> PullClass | None:
        return self.failures[0].pull_class if self.failures else None


@dataclass(frozen=True, slots=True)
class RunHistoryEntry:
    run: str
    state: State
    reason: Reason | None
    message: str
    finished_at: datetime | None
    last_number: int = 0


@dataclass(frozen=True, slots=True)
class Record:
    key: JobKey
    source: str
    spec_hash: str
    state: State = State.QUEUED
    reason: Reason | None = None
    message: str = ""
    exit_code: int | None = None
    attempts: tuple[Attempt, ...] = ()
    queued_at: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    history: tuple[RunHistoryEntry, ...] = ()
    base: int = 0
    version: str = ""

    @property
    def next_number(self) -> int:
        if self.open_attempt is not None:
            return self.open_attempt.number
        return self.last.number + 1 if self.last else self.base + 1

    @property
    def last(self) -> Attempt | None:
        return self.attempts[-1] if self.attempts else None

    @property
    def open_attempt(self) -> Attempt | None:
        return self.last if self.last is not None and self.last.is_open else None

    def next_run(self, spec_hash: str) -> "Record":
        used = self.next_number - (0 if self.open_attempt else 1)
        run = self.spec_hash[:RUN_LENGTH]
        past = RunHistoryEntry(run, self.state, self.reason, self.message, self.finished_at, used)
        history = (past, *self.history)
        same = (before.last_number for before in history if before.run == spec_hash[:RUN_LENGTH])
        return Record(
            self.key,
            self.source,
            spec_hash,
            history=history[:KEPT_RUNS],
            base=max(same, default=0),
            version=self.version,
        )


def is_over(record: Record, spec_hash: str, source: str) -> bool:
    """Whether 0.1 leaves the job alone: its run has ended, and neither spec nor source is new."""
    return record.state.is_final and record.spec_hash == spec_hash and record.source == source


def finds(item: Mapping[str, Any]) -> bool:
    """Whether 0.1's list of records has this ConfigMap."""
    labels = item["metadata"].get("labels") or {}
    return bool(labels.get(COMPONENT) == RECORD)


def parse_record(item: Mapping[str, Any]) -> Record:
    """Errors: KeyError, TypeError, ValueError or AttributeError, all BrokenRecord in 0.1."""
    data = json.loads(item["data"][KEY])
    return record_from_data(key_of(item), data, item["metadata"]["resourceVersion"])


def key_of(item: Mapping[str, Any]) -> JobKey:
    metadata = item["metadata"]
    named = (metadata.get("labels") or {}).get(JOB)
    return JobKey(metadata["namespace"], named or metadata["name"].removesuffix(".record"))


def record_from_data(key: JobKey, data: Mapping[str, Any], version: str) -> Record:
    return Record(
        key=key,
        source=data["source"],
        spec_hash=data["specHash"],
        state=State(data["state"]),
        reason=_reason(data.get("reason")),
        message=data.get("message", ""),
        exit_code=data.get("exitCode"),
        base=data.get("base", 0),
        attempts=tuple(_attempt_from_data(entry) for entry in data.get("attempts", ())),
        queued_at=parse_time(data.get("queuedAt")),
        started_at=parse_time(data.get("startedAt")),
        finished_at=parse_time(data.get("finishedAt")),
        history=tuple(
            RunHistoryEntry(
                entry["run"],
                State(entry["state"]),
                _reason(entry.get("reason")),
                entry.get("message", ""),
                parse_time(entry.get("finishedAt")),
                entry.get("lastNumber", 0),
            )
            for entry in data.get("history", ())
        ),
        version=version,
    )


def parse_time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def format_time(time: datetime | None) -> str | None:
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z") if time else None


def _attempt_from_data(data: Mapping[str, Any]) -> Attempt:
    return Attempt(
        number=data["number"],
        pod=data["pod"],
        uid=data.get("uid", ""),
        policies=data.get("pullPolicies"),
        claimed_at=parse_time(data.get("claimedAt")),
        started_at=parse_time(data.get("startedAt")),
        finished_at=parse_time(data.get("finishedAt")),
        outcome=_reason(data.get("outcome")),
        message=data.get("message", ""),
        exit_code=data.get("exitCode"),
        failures=tuple(
            PullFailure(
                entry["container"],
                entry["reason"],
                PullClass(entry["class"]),
                entry["message"],
                entry["advances"],
            )
            for entry in data.get("failures", ())
        ),
    )


def _reason(value: str | None) -> Reason | None:
    return Reason(value) if value else None


def record_json(record: Record) -> dict[str, Any]:
    """State and attempts as `status -o json` of 0.1 prints them."""
    return {
        "state": record.state,
        "reason": record.reason,
        "message": record.message,
        "exitCode": record.exit_code,
        "startedAt": format_time(record.started_at),
        "finishedAt": format_time(record.finished_at),
        "attempts": [_attempt_json(attempt) for attempt in record.attempts],
    }


def status_json(record: Record) -> dict[str, Any]:
    """The whole entry of a job in `status -o json` of 0.1, but for its place in a queue."""
    return {
        "name": record.key.name,
        "namespace": record.key.namespace,
        "source": record.source,
        "specHash": record.spec_hash,
        **record_json(record),
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
