"""Delete one object in exactly the version that was judged, or judge it again.

Every delete of prune goes through `Deleter`.
"""

import threading
import time
from collections.abc import Callable
from pathlib import Path

from engine.cluster import api
from engine.cluster.client import Client
from engine.errors import (
    BrokenRecordError,
    BusyError,
    ConflictError,
    EngineError,
    ForbiddenError,
    UnreachableError,
)
from engine.prune.candidate import PruneCandidate
from engine.prune.record_finalizer import NotSavedError, RecordFinalizer
from engine.prune.result import DryRun, PruneAction, PruneEntry
from engine.prune.rule import Delete, Deleting, Verdict, finalizers_of, waiting_for_finalizers
from engine.runtime.retry import TRIES, retry_delay, retry_transient

_MAX_CONFLICTS = 5
_WEBHOOK = "admission webhook"

Evaluate = Callable[[PruneCandidate], Verdict | None]


class DeleteBudget:
    """The most that one run may delete. Safe to use from several threads."""

    def __init__(self, limit: int | None) -> None:
        self.refused = 0
        """How many deletes the limit has prevented."""
        self._limit = limit
        self._used = 0
        self._lock = threading.Lock()

    @property
    def is_spent(self) -> bool:
        """Whether no more may be deleted, unless something is given back."""
        return self._limit is not None and self._used >= self._limit

    @property
    def warning(self) -> str:
        """How many deletes the limit has prevented, in words; "" for none."""
        if not self.refused:
            return ""
        return f"the limit of {self._limit} deletes is reached, {self.refused} more would go"

    def acquire(self) -> bool:
        """Whether one more may be deleted."""
        with self._lock:
            if self.is_spent:
                self.refused += 1
                return False
            self._used += 1
            return True

    def release(self) -> None:
        """Give back one that was not used."""
        with self._lock:
            self._used -= 1


class Deleter:
    """Deletes for one run; safe to use from several threads."""

    def __init__(
        self,
        client: Client,
        budget: DeleteBudget,
        *,
        dry_run: DryRun = DryRun.NONE,
        logs_dir: Path | None = None,
    ) -> None:
        self.client = client
        self.budget = budget
        self.dry_run = dry_run
        self._finalizer = RecordFinalizer(client, logs_dir)

    def delete(
        self, candidate: PruneCandidate, reason: str, evaluate: Evaluate
    ) -> PruneEntry | None:
        """Its entry; None if the object was gone already.

        Guarantees: only the version of an object that was judged is deleted; after a conflict
        `evaluate` judges the object as it is now. No more is deleted than the budget allows.
        Errors: none; they are the entry's reason.
        """
        if not self.budget.acquire():
            return candidate.entry(PruneAction.KEPT, f"{reason}; the limit of deletes is reached")
        try:
            entry = self._delete(candidate, reason, evaluate)
        except Exception as error:  # noqa: BLE001 - one object must not stop the others
            words = f"internal error: {type(error).__name__}: {error}"
            entry = candidate.entry(PruneAction.FAILED, words)
        if entry is None or entry.action not in (PruneAction.DELETED, PruneAction.WOULD_DELETE):
            self.budget.release()
        return entry

    def _delete(
        self, candidate: PruneCandidate, reason: str, evaluate: Evaluate
    ) -> PruneEntry | None:
        conflicts, failures, maybe_sent = 0, 0, False
        has_to_be_read = candidate.has_to_be_read
        while True:
            if has_to_be_read:
                found = self._refetch(candidate, reason, evaluate, maybe_sent=maybe_sent)
                if not isinstance(found, tuple):
                    return found
                candidate, reason = found
            has_to_be_read = True
            try:
                gone = candidate.entry(PruneAction.DELETED, reason) if maybe_sent else None
                return self._try(candidate, reason) or gone
            except ConflictError as error:
                conflicts += 1
                if conflicts == _MAX_CONFLICTS:
                    words = f"it keeps changing: {error.cause}"
                    return candidate.entry(PruneAction.FAILED, words)
            except (BusyError, UnreachableError) as error:
                failures += 1
                maybe_sent = maybe_sent or isinstance(error, UnreachableError)
                if failures == TRIES:
                    return candidate.entry(PruneAction.FAILED, error.cause)
                time.sleep(retry_delay(error, failures))
            except BrokenRecordError as error:
                words = f"{reason}, but its outcome can't be recorded: {error}"
                return candidate.entry(PruneAction.INVALID, words)
            except EngineError as error:
                return candidate.entry(PruneAction.FAILED, error_text(error))

    def _try(self, candidate: PruneCandidate, reason: str) -> PruneEntry | None:
        """None if the object was gone already."""
        if self.dry_run is DryRun.CLIENT:
            return candidate.entry(PruneAction.WOULD_DELETE, reason)
        if self.dry_run is DryRun.NONE:
            self._finalizer.finalize(
                candidate, reason, lambda: self._send(candidate, dry_run=True) is not None
            )
        left = self._send(candidate, dry_run=self.dry_run is DryRun.SERVER)
        if left is None:
            return None
        if self.dry_run is DryRun.SERVER:
            return candidate.entry(PruneAction.WOULD_DELETE, reason)
        finalizers = finalizers_of(left)
        if finalizers:
            words = f"{reason}; {waiting_for_finalizers(finalizers)}"
            return candidate.entry(PruneAction.FAILED, words)
        return candidate.entry(PruneAction.DELETED, reason)

    def _send(self, candidate: PruneCandidate, *, dry_run: bool) -> api.Metadata | None:
        return api.delete(
            self.client,
            candidate.ref,
            candidate.resource,
            uid=candidate.uid,
            version=candidate.metadata["resourceVersion"],
            dry_run=dry_run,
        )

    def _read(self, candidate: PruneCandidate) -> PruneCandidate | None:
        """The object as it is now; all of a pod if its metadata isn't enough."""
        resource, ref = candidate.resource, candidate.ref
        metadata = api.get_metadata(self.client, ref, resource)
        if metadata is None:
            return None
        found = PruneCandidate(resource, metadata)
        if not found.has_to_be_read:
            return found
        pod = api.get(self.client, ref)
        return None if pod is None else PruneCandidate(resource, pod["metadata"], pod)

    def _refetch(
        self, candidate: PruneCandidate, reason: str, evaluate: Evaluate, *, maybe_sent: bool
    ) -> tuple[PruneCandidate, str] | PruneEntry | None:
        """The object as it is now with the reason to delete it, or its entry if it stays."""
        try:
            fresh = retry_transient(lambda: self._read(candidate), tries=TRIES)
            if fresh is None:
                return candidate.entry(PruneAction.DELETED, reason) if maybe_sent else None
            verdict = evaluate(fresh)
        except EngineError as error:
            return candidate.entry(PruneAction.FAILED, error_text(error))
        if maybe_sent and fresh.uid != candidate.uid:
            return candidate.entry(PruneAction.DELETED, reason)
        match verdict:
            case Delete(why):
                return fresh, why
            case None:
                return fresh.entry(PruneAction.KEPT, "it carries no TTL any more")
            case Deleting() if maybe_sent:
                return candidate.entry(PruneAction.DELETED, reason)
            case _:
                return fresh.to_entry(verdict)


def error_text(error: EngineError) -> str:
    """Why the cluster refused."""
    if isinstance(error, NotSavedError):
        return error.cause
    if _WEBHOOK in error.cause:
        return f"denied by a webhook: {error.cause}"
    if isinstance(error, ForbiddenError):
        return f"forbidden: {error.cause}"
    return error.cause
