"""Delete one object in exactly the version that was judged, or judge it again."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from engine.cluster import api
from engine.cluster.client import Client
from engine.decide.prune.rule import (
    Delete,
    Deleting,
    Verdict,
    finalizers_of,
    waiting_for_finalizers,
)
from engine.errors import (
    BrokenRecordError,
    BusyError,
    ConflictError,
    EngineError,
    ForbiddenError,
    UnreachableError,
)
from engine.prune.candidate import PruneCandidate
from engine.prune.options import DryRun
from engine.prune.outcome_keeper import OutcomeKeeper, OutcomeNotRecordedError
from engine.prune.result import KeepReason, PruneAction, PruneEntry
from engine.prune.save_logs import LogsNotSavedError
from engine.runtime.retry import TRIES, retry_delay, retry_transient

_MOST_CONFLICTS = 5
_WEBHOOK = "admission webhook"

Evaluate = Callable[[PruneCandidate], Verdict | None]


class DeleteBudget:
    """The most that one run may delete; what was not deleted after all is given back."""

    def __init__(self, most: int | None) -> None:
        self._left = most
        self._lock = threading.Lock()

    @property
    def is_spent(self) -> bool:
        """Whether no more may be deleted, unless something is given back."""
        return self._left == 0

    def acquire(self) -> bool:
        """Whether one more may be deleted."""
        with self._lock:
            if self._left is None:
                return True
            if self._left <= 0:
                return False
            self._left -= 1
            return True

    def release(self) -> None:
        """One was not deleted after all."""
        with self._lock:
            if self._left is not None:
                self._left += 1


@dataclass(frozen=True, slots=True)
class Deleter:
    """Deletes for one run; safe to use from several threads."""

    client: Client
    keeper: OutcomeKeeper
    budget: DeleteBudget
    dry_run: DryRun = DryRun.NONE
    grace: int | None = None

    def delete(
        self, candidate: PruneCandidate, reason: str, evaluate: Evaluate
    ) -> PruneEntry | None:
        """What became of it; None if it was gone already.

        Guarantees: only an object that `evaluate` lets go, in the version that was judged, is
        deleted, and no more than the budget allows. Errors: none; they are the entry's reason.
        """
        if not self.budget.acquire():
            return candidate.over_budget(reason)
        try:
            entry = self._delete(candidate, reason, evaluate)
        except Exception as error:  # noqa: BLE001 - one object must not stop the others
            entry = candidate.failed(f"internal error: {type(error).__name__}: {error}")
        if entry is None or entry.action not in (PruneAction.DELETED, PruneAction.WOULD_DELETE):
            self.budget.release()
        return entry

    def _delete(
        self, candidate: PruneCandidate, reason: str, evaluate: Evaluate
    ) -> PruneEntry | None:
        conflicts, failures, maybe_sent = 0, 0, False
        if candidate.has_to_be_read:
            read = self._refetch(candidate, reason, evaluate, maybe_sent=False)
            if not isinstance(read, tuple):
                return read
            candidate, reason = read
        while True:
            try:
                entry = self._try(candidate, reason)
                return candidate.deleted(reason) if entry is None and maybe_sent else entry
            except ConflictError as error:
                conflicts += 1
                if conflicts == _MOST_CONFLICTS:
                    return candidate.failed(f"it keeps changing: {error.cause}")
            except (BusyError, UnreachableError) as error:
                failures += 1
                maybe_sent = maybe_sent or isinstance(error, UnreachableError)
                if failures == TRIES:
                    return candidate.failed(error.cause)
                time.sleep(retry_delay(error, failures))
            except BrokenRecordError as error:
                return candidate.invalid(f"{reason}, but its outcome can't be recorded: {error}")
            except EngineError as error:
                return candidate.failed(error_text(error))
            again = self._refetch(candidate, reason, evaluate, maybe_sent=maybe_sent)
            if not isinstance(again, tuple):
                return again
            candidate, reason = again

    def _try(self, candidate: PruneCandidate, reason: str) -> PruneEntry | None:
        """None if the object was gone already."""
        if self.dry_run is DryRun.CLIENT:
            return candidate.would_delete(reason)
        if self.dry_run is DryRun.NONE:
            self.keeper.keep(
                candidate, reason, lambda: self._send(candidate, dry_run=True) is not None
            )
        left = self._send(candidate, dry_run=self.dry_run is DryRun.SERVER)
        if left is None:
            return None
        if self.dry_run is DryRun.SERVER:
            return candidate.would_delete(reason)
        finalizers = finalizers_of(left)
        if finalizers:
            return candidate.failed(f"{reason}; {waiting_for_finalizers(finalizers)}")
        return candidate.deleted(reason)

    def _send(self, candidate: PruneCandidate, *, dry_run: bool) -> api.Metadata | None:
        return api.delete(
            self.client,
            candidate.ref,
            candidate.resource,
            uid=candidate.uid,
            version=candidate.metadata["resourceVersion"],
            grace=self.grace,
            dry_run=dry_run,
        )

    def _read(self, candidate: PruneCandidate) -> PruneCandidate | None:
        """The object as it is now; of a pod whose metadata doesn't tell enough, all of it."""
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
                return candidate.deleted(reason) if maybe_sent else None
            verdict = evaluate(fresh)
        except EngineError as error:
            return candidate.failed(error_text(error))
        if maybe_sent and fresh.uid != candidate.uid:
            return candidate.deleted(reason)
        match verdict:
            case Delete(why):
                return fresh, why
            case None:
                return fresh.kept("it carries no TTL any more", KeepReason.CHANGED)
            case Deleting(stuck=False) if maybe_sent:
                return candidate.deleted(reason)
            case _:
                return fresh.to_entry(verdict)


def error_text(error: EngineError) -> str:
    """Why the cluster said no, in words that tell whom to ask."""
    if isinstance(error, OutcomeNotRecordedError | LogsNotSavedError):
        return error.cause
    if _WEBHOOK in error.cause:
        return f"denied by a webhook: {error.cause}"
    if isinstance(error, ForbiddenError):
        return f"forbidden: {error.cause}"
    return error.cause
