"""Delete one object in exactly the version that was judged, or judge it again.

Every delete of prune goes through `Deleter`.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from msgspec.structs import replace

from engine.cluster import api
from engine.cluster.client import Client
from engine.errors import (
    BrokenRecordError,
    BusyError,
    ConflictError,
    EngineError,
    ForbiddenError,
    OwnershipError,
    UnreachableError,
)
from engine.prune.candidate import PruneCandidate
from engine.prune.record_finalizer import NotSavedError, RecordFinalizer, UnrecordedError
from engine.prune.result import DryRun, PruneAction, PruneEntry
from engine.prune.rule import Verdict, waiting_for_finalizers
from engine.runtime.retry import TRIES, retry_delay

_WEBHOOK = "admission webhook"

Evaluate = Callable[[PruneCandidate], Verdict | None]


@dataclass(slots=True)
class Deleter:
    """Deletes for one run, no more than its limit; safe to use from several threads."""

    client: Client
    limit: int | None = None
    dry_run: DryRun = DryRun.NONE
    reads_records: bool = True
    """Without it a dry run names also what no record has."""
    leads: Callable[[], bool] | None = None
    """Whether this engine may still delete: one that was paused may have lost its lead."""
    foreign: set[str] = field(default_factory=set)
    """UIDs of what carries the engine's labels, and isn't its own."""
    _used: int = 0
    _refused: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _finalizer: RecordFinalizer = field(init=False)

    def __post_init__(self) -> None:
        self._finalizer = RecordFinalizer(self.client)

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
            self._finalizer.finalize(
                candidate,
                reason,
                None if is_dry else lambda: self._send(candidate, dry_run=True) is not None,
            )
        if self.dry_run is DryRun.CLIENT:
            return candidate.entry(gone, reason)
        left = self._send(candidate, dry_run=is_dry)
        if left and (waits := self._held_by(candidate, left, may_wait=not is_dry)):
            return candidate.entry(PruneAction.FAILED, f"{reason}; {waits}")
        return None if left is None else candidate.entry(gone, reason)

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
