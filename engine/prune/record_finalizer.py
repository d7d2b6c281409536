"""Save the outcome of a pod of the engine's in its record, before the pod is deleted."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from msgspec import Struct, field
from msgspec.structs import replace

from engine.cluster import api
from engine.cluster.client import Client
from engine.cluster.records import CONFIG_MAP_RECORDS, read_record, write_record
from engine.errors import (
    AlreadyExistsError,
    BrokenRecordError,
    ConflictError,
    EngineError,
    NotFoundError,
)
from engine.lifecycle.record import Record, mask_record
from engine.lifecycle.state import gate_position, is_finished, is_terminating
from engine.prune.candidate import PruneCandidate
from engine.status.containers import started_at
from engine.status.deletion import read_end
from engine.status.outcome import Outcome, Reason
from engine.telemetry.redact import REDACTOR
from engine.wellknown import JOB, RUN

_LIST_AFTER = 20
_MAX_WRITES = 5
_NOT_SAVED = "its outcome could not be recorded"


class NotSavedError(EngineError):
    """Something of the pod would be lost, so the pod stays."""


class UnrecordedError(EngineError):
    """No record has the pod, and without it the job would run again."""


class RecordFinalizer(Struct):
    """Safe to use from several threads.

    Guarantees: an attempt whose pod is deleted by prune is never left open in its record.
    """

    client: Client
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _asked: Counter[str] = field(default_factory=Counter)
    _closed: dict[str, frozenset[str]] = {}
    """By namespace, UIDs of pods whose outcome is in a record."""

    def finalize(
        self, candidate: PruneCandidate, reason: str, dry_run: Callable[[], bool] | None
    ) -> None:
        """Save the outcome of a pod; any other object needs nothing.

        `dry_run` tries the delete before a job that still runs is recorded as cancelled. It returns
        whether the pod is still there. Without it nothing is written.
        Errors: NotSavedError, BrokenRecordError, UnrecordedError; and those of `dry_run`.
        """
        key = candidate.job
        if key is None or self._is_known_closed(candidate):
            return
        checked = False
        for _ in range(_MAX_WRITES):
            with _not_saved():
                record = read_record(self.client, key)
            attempt = record.open_attempt if record is not None else None
            if record is None or candidate.uid not in record.pods:
                _check_unrecorded(self.client, candidate, record)
                return
            if dry_run is None or attempt is None or attempt.uid != candidate.uid:
                return
            pod = api.get(self.client, candidate.ref)
            if pod is None or pod["metadata"]["uid"] != candidate.uid:
                return
            outcome = read_end(pod)
            if outcome is None:
                if is_terminating(pod) or not (checked or dry_run()):
                    return
                checked = True
                outcome = Outcome(Reason.CANCELLED, f"pruned before it had finished: {reason}")
            attempt = replace(attempt, started_at=attempt.started_at or started_at(pod))
            closed = record.with_attempt_closed(attempt, outcome, self.client.now())
            # A record that has changed since it was read is read again.
            with _not_saved(), suppress(ConflictError, AlreadyExistsError, NotFoundError):
                write_record(self.client, mask_record(closed, REDACTOR.of(key)))
                return
        raise NotSavedError(f"{_NOT_SAVED}: the record keeps changing")

    def _is_known_closed(self, candidate: PruneCandidate) -> bool:
        """After some pods of a namespace its records are read at once, not one by one."""
        namespace = candidate.ref.namespace
        with self._lock:
            self._asked[namespace] += 1
            if self._asked[namespace] <= _LIST_AFTER:
                return False
            if namespace not in self._closed:
                self._closed[namespace] = frozenset()  # if the records can't be read
                with suppress(EngineError):
                    closed = CONFIG_MAP_RECORDS.closed_pods(self.client, namespace)
                    self._closed[namespace] = frozenset(closed)
            return candidate.uid in self._closed[namespace]


def _check_unrecorded(client: Client, candidate: PruneCandidate, record: Record | None) -> None:
    """Errors: UnrecordedError for a pod that is labelled as a job's, unless it never ran, or is
    over and its job has a record of other runs.
    """
    if {JOB, RUN}.isdisjoint(candidate.labels):
        return
    pod = api.get(client, candidate.ref)
    if pod is None or gate_position(pod) is not None or (record is not None and is_finished(pod)):
        return
    removal = f"kubectl delete pod {candidate.ref.name} -n {candidate.ref.namespace} removes it"
    raise UnrecordedError(f"no record has it, and its job would run again; {removal}")


@contextmanager
def _not_saved() -> Iterator[None]:
    """Errors: NotSavedError for one of the cluster."""
    try:
        yield
    except BrokenRecordError:
        raise
    except EngineError as error:
        raise NotSavedError(f"{_NOT_SAVED}: {error.cause}") from error
