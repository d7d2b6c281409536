"""Delete one object in exactly the version that was judged, or judge it again."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from engine.cluster import api
from engine.cluster.client import Client
from engine.decide.prune import Delete, Deleting, Verdict
from engine.decide.prune.rule import finalizers_of, waits_for
from engine.errors import (
    BusyError,
    ConflictError,
    EngineError,
    ForbiddenError,
    UnreachableError,
)
from engine.prune.options import DryRun
from engine.prune.rescue import Rescue, RescueError
from engine.prune.result import PruneAction, PruneEntry, Why
from engine.prune.save_logs import LogsNotSavedError
from engine.prune.target import Target
from engine.runtime.retry import TRIES, retry_delay, retry_transient

_MOST_CONFLICTS = 5
_WEBHOOK = "admission webhook"

JudgeAgain = Callable[[Target], Verdict | None]


@dataclass(frozen=True, slots=True)
class Deleter:
    """Deletes for one run; safe to use from several threads."""

    client: Client
    rescue: Rescue
    dry_run: DryRun = DryRun.NONE
    grace: int | None = None

    def delete(self, target: Target, reason: str, judge: JudgeAgain) -> PruneEntry | None:
        """What became of it; None if it was gone already.

        Guarantees: only an object that `judge` lets go, in the version that was judged, is
        deleted. Errors: none of the cluster's; they are the entry's reason.
        """
        conflicts, tries, asked = 0, 0, False
        while True:
            try:
                entry = self._try(target, reason)
                return target.deleted(reason) if entry is None and asked else entry
            except ConflictError as error:
                conflicts += 1
                if conflicts == _MOST_CONFLICTS:
                    return target.failed(f"it keeps changing: {error.cause}")
            except (BusyError, UnreachableError) as error:
                tries += 1
                asked = asked or isinstance(error, UnreachableError)
                if tries == TRIES:
                    return target.failed(error.cause)
                time.sleep(retry_delay(error, tries))
            except EngineError as error:
                return target.failed(words_of(error))
            again = self._look_again(target, reason, judge, asked=asked)
            if not isinstance(again, tuple):
                return again
            target, reason = again

    def _try(self, target: Target, reason: str) -> PruneEntry | None:
        """None if the object was gone already."""
        if self.dry_run is DryRun.NONE:
            self.rescue(target, reason, lambda: self._send(target, dry_run=True) is not None)
        left = self._send(target, dry_run=self.dry_run is DryRun.SERVER)
        if left is None:
            return None
        if self.dry_run is DryRun.SERVER:
            return target.would_go(reason)
        finalizers = finalizers_of(left)
        if finalizers:
            return target.failed(f"{reason}; {waits_for(finalizers)}")
        return target.deleted(reason)

    def _send(self, target: Target, *, dry_run: bool) -> api.Metadata | None:
        return api.delete(
            self.client,
            target.ref,
            target.resource,
            uid=target.uid,
            version=target.metadata["resourceVersion"],
            grace=self.grace,
            dry_run=dry_run,
        )

    def _look_again(
        self, target: Target, reason: str, judge: JudgeAgain, *, asked: bool
    ) -> tuple[Target, str] | PruneEntry | None:
        """The object as it is now with the reason to delete it, or its entry if it stays."""
        try:
            metadata = retry_transient(
                lambda: api.get_metadata(self.client, target.ref, target.resource), tries=TRIES
            )
            if metadata is None:
                return target.deleted(reason) if asked else None
            fresh = Target(target.resource, metadata)
            verdict = judge(fresh)
        except EngineError as error:
            return target.failed(words_of(error))
        if asked and fresh.uid != target.uid:
            return target.deleted(reason)
        match verdict:
            case Delete(why):
                return fresh, why
            case None:
                words = "it carries no TTL any more"
                return PruneEntry(fresh.ref, PruneAction.KEPT, words, Why.CHANGED)
            case Deleting(stuck=False) if asked:
                return target.deleted(reason)
            case _:
                return fresh.stays(verdict)


def words_of(error: EngineError) -> str:
    """Why the cluster said no, in words that tell whom to ask."""
    if isinstance(error, RescueError | LogsNotSavedError):
        return error.cause
    if _WEBHOOK in error.cause:
        return f"denied by a webhook: {error.cause}"
    if isinstance(error, ForbiddenError):
        return f"forbidden: {error.cause}"
    return error.cause
