"""What must be safe before a pod of the engine's goes: its log, and its outcome in the record."""

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine.cluster import api
from engine.cluster.client import Client
from engine.cluster.records import read_record, recorded_pod_uids, write_record
from engine.decide.record import Attempt, Record
from engine.decide.situation import is_terminating
from engine.decide.transitions import with_attempt_closed
from engine.errors import (
    AlreadyExistsError,
    BrokenRecordError,
    ConflictError,
    EngineError,
    NotFoundError,
)
from engine.prune.candidate import PruneCandidate
from engine.prune.save_logs import save_logs
from engine.refs import JobKey
from engine.status.containers import started_at
from engine.status.deletion import read_end
from engine.status.outcome import Outcome, Reason

_LIST_AFTER = 20
_MOST_WRITES = 5


class OutcomeNotRecordedError(EngineError):
    """Something of the pod would be lost, so the pod stays."""


class OutcomeKeeper:
    """Safe to use from several threads.

    Guarantees: an attempt whose pod is gone by this hand is never left open in its record.
    """

    def __init__(self, client: Client, logs_dir: Path | None = None) -> None:
        self._client = client
        self._logs_dir = logs_dir
        self._lock = threading.Lock()
        self._asked: Counter[str] = Counter()
        self._closed: dict[str, frozenset[str]] = {}

    def keep(self, candidate: PruneCandidate, reason: str, dry_run: Callable[[], bool]) -> None:
        """`dry_run` tries the delete before a job that still runs is written down as cancelled.

        It tells whether the pod is still there, and raises what the delete would meet.
        Errors: OutcomeNotRecordedError, BrokenRecordError; and what `dry_run` raises.
        """
        key = candidate.job
        if key is None or not candidate.is_engine_pod:
            return
        if self._logs_dir is not None:
            save_logs(self._client, candidate, self._logs_dir)
        if not self._is_known_closed(candidate):
            self._close(candidate, key, reason, dry_run)

    def _close(
        self, candidate: PruneCandidate, key: JobKey, reason: str, dry_run: Callable[[], bool]
    ) -> None:
        checked = False
        for _ in range(_MOST_WRITES):
            record = self._read(key)
            attempt = _attempt_of(record, candidate) if record else None
            if record is None or attempt is None:
                return
            pod = api.get(self._client, candidate.ref)
            if pod is None or pod["metadata"]["uid"] != candidate.uid:
                return
            outcome = read_end(pod)
            if outcome is None and is_terminating(pod):
                return
            if outcome is None:
                if not checked:
                    if not dry_run():
                        return
                    checked = True
                outcome = Outcome(Reason.CANCELLED, f"pruned before it had finished: {reason}")
            if self._write(_ended(record, attempt, candidate, pod, outcome, self._client)):
                return
        raise OutcomeNotRecordedError(
            "its outcome could not be recorded: the record keeps changing"
        )

    def _read(self, key: JobKey) -> Record | None:
        try:
            return read_record(self._client, key)
        except BrokenRecordError:
            raise
        except EngineError as error:
            raise OutcomeNotRecordedError(f"its outcome could not be recorded: {error}") from error

    def _write(self, record: Record) -> bool:
        try:
            write_record(self._client, record)
        except (ConflictError, AlreadyExistsError, NotFoundError):
            return False
        except EngineError as error:
            raise OutcomeNotRecordedError(f"its outcome could not be recorded: {error}") from error
        return True

    def _is_known_closed(self, candidate: PruneCandidate) -> bool:
        """After some pods of a namespace its records are read at once, not one by one."""
        namespace = candidate.ref.namespace
        with self._lock:
            self._asked[namespace] += 1
            if self._asked[namespace] <= _LIST_AFTER:
                return False
            if namespace not in self._closed:
                self._closed[namespace] = _closed_pods(self._client, namespace)
            return candidate.uid in self._closed[namespace]


def _closed_pods(client: Client, namespace: str) -> frozenset[str]:
    """UIDs of pods whose outcome is in a record; none if the records can't be read."""
    try:
        return frozenset(recorded_pod_uids(client, namespace))
    except EngineError:
        return frozenset()


def _attempt_of(record: Record, candidate: PruneCandidate) -> Attempt | None:
    """The open attempt of this pod; one that 0.1 recorded before its pod has a name, but no UID."""
    attempt = record.open_attempt
    if attempt is None or (attempt.uid or candidate.uid) != candidate.uid:
        return None
    return attempt if attempt.pod == candidate.ref.name else None


def _ended(
    record: Record,
    attempt: Attempt,
    candidate: PruneCandidate,
    pod: dict[str, Any],
    outcome: Outcome,
    client: Client,
) -> Record:
    whole = replace(attempt, uid=candidate.uid, started_at=attempt.started_at or started_at(pod))
    return with_attempt_closed(record, whole, outcome, client.now())
