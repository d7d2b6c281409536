"""Delete one object in exactly the version that was judged, or judge it again.

Every delete of prune goes through `Deleter`. It saves the outcome of a pod of the engine's in its
record first.
"""

import threading
import time
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
    BusyError,
    ConflictError,
    EngineError,
    ForbiddenError,
    NotFoundError,
    OwnershipError,
    UnreachableError,
)
from engine.lifecycle.record import Record, mask_record
from engine.lifecycle.state import gate_position, is_finished, is_terminating
from engine.prune.candidate import PruneCandidate
from engine.prune.result import DryRun, PruneAction, PruneEntry
from engine.prune.rule import Verdict, waiting_for_finalizers
from engine.runtime.retry import TRIES, retry_delay
from engine.status.containers import started_at
from engine.status.deletion import read_end
from engine.status.outcome import Outcome, Reason
from engine.telemetry.redact import REDACTOR
from engine.wellknown import JOB, RUN

_WEBHOOK = "admission webhook"
_LIST_AFTER = 20
_MAX_WRITES = 5
_NOT_SAVED = "its outcome could not be recorded"

Evaluate = Callable[[PruneCandidate], Verdict | None]


class NotSavedError(EngineError):
    """Something of the pod would be lost, so the pod stays."""


class UnrecordedError(EngineError):
    """No record has the pod, and without it the job would run again."""


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


class Deleter(Struct, eq=False):
    """Deletes for one run, no more than its limit; safe to use from several threads.

    Guarantees: an attempt whose pod it deletes is never left open in its record.
    """

    client: Client
    limit: int | None = None
    dry_run: DryRun = DryRun.NONE
    reads_records: bool = True
    """Without it a dry run names also what no record has."""
    leads: Callable[[], bool] | None = None
    """Whether this engine may still delete: one that was paused may have lost its lead."""
    foreign: set[str] = set()
    """UIDs of what carries the engine's labels, and isn't its own."""
    _used: int = 0
    _refused: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _reading: threading.Lock = field(default_factory=threading.Lock)
    _asked: Counter[str] = field(default_factory=Counter)
    _closed: dict[str, frozenset[str]] = {}
    """By namespace, UIDs of pods whose outcome is in a record."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """How many deletes the limit has prevented, if it has."""
        more = f"the limit of {self.limit} deletes is reached, {self._refused} more would go"
        return (more,) if self._refused else ()

    @property
    def notes(self) -> tuple[str, ...]:
        """How many objects were left because nothing but labels says that they are the engine's."""
        count = len(self.foreign)
        words = "1 object is" if count == 1 else f"{count} objects are"
        return (f"{words} labelled, not ours: left",) if count else ()

    def delete(
        self, candidate: PruneCandidate, reason: str, evaluate: Evaluate
    ) -> PruneEntry | None:
        """Its entry; None if the object was gone already.

        Guarantees: only the version of an object that was judged is deleted; after a conflict
        `evaluate` judges the object as it is now. No more is deleted than the limit allows.
        Errors: none; they are the entry's reason.
        """
        with self._lock:
            if self.limit is not None and self._used >= self.limit:
                self._refused += 1
                words = f"{reason}; the limit of deletes is reached"
                return candidate.entry(PruneAction.KEPT, words)
            self._used += 1
        try:
            entry = self._delete(candidate, reason, evaluate)
        except Exception as error:  # noqa: BLE001 - one object must not stop the others
            entry = candidate.entry(PruneAction.FAILED, error_text(error))
        if entry is None or entry.action not in (PruneAction.DELETED, PruneAction.WOULD_DELETE):
            with self._lock:
                self._used -= 1
        return entry

    def _delete(
        self, candidate: PruneCandidate, reason: str, evaluate: Evaluate
    ) -> PruneEntry | None:
        """Errors: EngineError."""
        failures, maybe_sent, has_to_be_read = 0, False, candidate.has_to_be_read
        while True:
            gone = candidate.entry(PruneAction.DELETED, reason) if maybe_sent else None
            try:
                if has_to_be_read:
                    fresh = self._read(candidate)
                    if fresh is None or (gone and _is_going(fresh, candidate)):
                        return gone
                    words = "it carries no TTL any more"
                    action, reason = evaluate(fresh) or (PruneAction.KEPT, words)
                    if action is not PruneAction.DELETED:
                        return fresh.entry(action, reason)
                    candidate = fresh
                has_to_be_read = True
                return self._try(candidate, reason) or gone
            except (ConflictError, BusyError, UnreachableError) as error:
                failures += 1
                if failures == TRIES:
                    raise
                maybe_sent = maybe_sent or isinstance(error, UnreachableError)
                if not isinstance(error, ConflictError):
                    time.sleep(retry_delay(error, failures))
            except BrokenRecordError as error:
                words = f"{reason}, but its outcome can't be recorded: {error}"
                return candidate.entry(PruneAction.INVALID, words)
            except UnrecordedError as error:
                return candidate.entry(PruneAction.INVALID, f"{reason}, but {error.cause}")
            except OwnershipError as error:
                return candidate.entry(PruneAction.KEPT, error.cause)

    def _try(self, candidate: PruneCandidate, reason: str) -> PruneEntry | None:
        """None if the object was gone already."""
        if self.leads is not None and not self.leads():
            raise OwnershipError("another engine leads this source by now")
        is_dry = self.dry_run is not DryRun.NONE
        gone = PruneAction.WOULD_DELETE if is_dry else PruneAction.DELETED
        if self.reads_records:
            self._save_outcome(candidate, reason)
        if self.dry_run is DryRun.CLIENT:
            return candidate.entry(gone, reason)
        left = self._send(candidate, dry_run=is_dry)
        if left and (waits := self._held_by(candidate, left, may_wait=not is_dry)):
            return candidate.entry(PruneAction.FAILED, f"{reason}; {waits}")
        return None if left is None else candidate.entry(gone, reason)

    def _save_outcome(self, candidate: PruneCandidate, reason: str) -> None:
        """Save the outcome of a pod in its record; any other object needs nothing.

        The delete of a job that still runs is tried before it is recorded as cancelled.
        Errors: NotSavedError, BrokenRecordError, UnrecordedError; and those of that try.
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
            is_dry = self.dry_run is not DryRun.NONE
            if is_dry or attempt is None or attempt.uid != candidate.uid:
                return
            pod = api.get(self.client, candidate.ref)
            if pod is None or pod["metadata"]["uid"] != candidate.uid:
                return
            outcome = read_end(pod)
            if outcome is None:
                if is_terminating(pod):
                    return
                if not checked and self._send(candidate, dry_run=True) is None:
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
        with self._reading:
            self._asked[namespace] += 1
            if self._asked[namespace] <= _LIST_AFTER:
                return False
            if namespace not in self._closed:
                self._closed[namespace] = frozenset()  # if the records can't be read
                with suppress(EngineError):
                    closed = CONFIG_MAP_RECORDS.closed_pods(self.client, namespace)
                    self._closed[namespace] = frozenset(closed)
            return candidate.uid in self._closed[namespace]

    def _held_by(self, candidate: PruneCandidate, left: api.Metadata, *, may_wait: bool) -> str:
        """The finalizers that hold it up; many a controller, such as Kueue's, lets go at once."""
        waits = waiting_for_finalizers(left)
        for pause in (0.1, 0.3, 0.6) if may_wait else ():
            if not waits or left.get("deletionGracePeriodSeconds"):
                return ""
            time.sleep(pause)
            left = api.get_metadata(self.client, candidate.ref, candidate.resource) or {}
            waits = waiting_for_finalizers(left)
        return waits

    def _send(self, candidate: PruneCandidate, *, dry_run: bool = False) -> api.Metadata | None:
        resource, metadata, proof = candidate.resource, candidate.metadata, candidate.proof
        return api.delete(self.client, resource, metadata, proof, dry_run=dry_run)

    def _read(self, candidate: PruneCandidate) -> PruneCandidate | None:
        """The object as it is now; all of a pod if its metadata isn't enough."""
        resource, ref = candidate.resource, candidate.ref
        metadata = api.get_metadata(self.client, ref, resource)
        if metadata is None:
            return None
        found = replace(candidate, metadata=metadata, pod=None)
        if resource.kind != "Pod" or not found.has_to_be_read:
            return found
        pod = api.get(self.client, ref)
        return None if pod is None else replace(found, metadata=pod["metadata"], pod=pod)


def _is_going(fresh: PruneCandidate, sent: PruneCandidate) -> bool:
    """Whether a delete whose reply was lost has done its work."""
    return "deletionTimestamp" in fresh.metadata or sent.uid not in ("", fresh.uid)


def error_text(error: Exception) -> str:
    """Why the cluster refused, or what the engine itself stumbled over."""
    if not isinstance(error, EngineError):
        return f"internal error: {type(error).__name__}: {error}"
    if isinstance(error, NotSavedError):
        return error.cause
    if _WEBHOOK in error.cause:
        return f"denied by a webhook: {error.cause}"
    if isinstance(error, ConflictError):
        return f"it keeps changing: {error.cause}"
    return f"forbidden: {error.cause}" if isinstance(error, ForbiddenError) else error.cause
