"""Jobs whose spec is gone from their source: cancel them, remove their objects, forget them last.

The record is what makes a job the source's own. As long as anything of the job may still be there
the record is, too, so that the next pass can go on.
"""

import time
from collections.abc import Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from engine.cluster import api
from engine.cluster.api import CONFIG_MAPS, PODS, SECRETS
from engine.cluster.client import Client
from engine.cluster.records import list_records, read_record, write_record
from engine.decide.prune import Delete, Protected, Verdict
from engine.decide.record import Record, finished
from engine.decide.transitions import with_attempt_closed
from engine.errors import AlreadyExistsError, ConflictError, EngineError, ForbiddenError
from engine.prune.brake import Brake
from engine.prune.delete import Deleter, words_of
from engine.prune.pages import pages
from engine.prune.rescue import Rescue
from engine.prune.result import PruneAction, PruneEntry, PruneResult, Tally, Tell
from engine.prune.target import Target
from engine.refs import JobKey, Ref, record_name
from engine.status.deletion import read_end
from engine.status.outcome import Outcome, Reason
from engine.wellknown import HOLD, JOB, MANAGED_BY, MANAGER, SOURCE

_MOST_WRITES = 5
_LONGEST_END = 90.0
_KINDS = (PODS, SECRETS, CONFIG_MAPS)


@dataclass(frozen=True, slots=True)
class Removal:
    """Whose jobs go, and how many objects at most. `namespaces` are where to look for records if
    the source may not look everywhere.
    """

    source: str
    namespaces: tuple[str, ...]
    max_deletes: int | None = None
    concurrency: int = 8


def remove_gone(
    client: Client, removal: Removal, living: Collection[JobKey], tell: Tell
) -> PruneResult:
    """Remove every job of the source that is not among the `living`.

    Guarantees: a record goes only after everything else of its job is confirmed gone, and only in
    the version that was read. Errors: among the result's; each leaves its job's record in place.
    """
    tally = Tally(tell)
    remover = Remover(client, removal, tally, Brake(removal.max_deletes))
    gone = [record for record in remover.records(living) if record.key not in living]
    if gone:
        with ThreadPoolExecutor(removal.concurrency, "remove") as pool:
            list(pool.map(remover.remove, gone))
    return tally.result()


@dataclass(frozen=True, slots=True)
class Remover:
    """Removes jobs of one source in one pass; safe to use from several threads."""

    client: Client
    removal: Removal
    tally: Tally
    brake: Brake

    def records(self, living: Collection[JobKey]) -> Iterable[Record]:
        selector = f"{SOURCE}={self.removal.source}"
        try:
            try:
                listed = [list_records(self.client, "", selector)]
            except ForbiddenError:
                where = self.removal.namespaces
                listed = [list_records(self.client, name, selector) for name in where]
        except EngineError as failure:
            self.tally.add_error(failure)
            return
        for records in listed:
            for key, error in sorted(records.invalid.items()):
                if key not in living:
                    self.tally.add_error(error)
            yield from (record for _, record in sorted(records.items.items()))

    def remove(self, record: Record) -> bool:
        """Whether something failed, so that another try soon may do better than this one.

        Errors: none; what failed is in the tally, and the job's record stays.
        """
        try:
            return self._remove(record) is PruneAction.FAILED
        except EngineError as error:
            self._failed(record.key, words_of(error))
        except Exception as error:  # noqa: BLE001 - one job must not stop the others
            self._failed(record.key, f"internal error: {type(error).__name__}: {error}")
        return True

    def _remove(self, record: Record) -> PruneAction:
        """What became of the job as a whole."""
        if record.source != self.removal.source:
            return PruneAction.KEPT
        reason = f"its spec was removed from source {self.removal.source}"
        targets = self._objects(record.key)
        pods = [target for target in targets if target.resource is PODS]
        if any(isinstance(_held(target, reason), Protected) for target in targets):
            protected = f"{reason}; {HOLD} is true on an object of its job"
            self.tally.add(PruneEntry(_ref(record.key), PruneAction.PROTECTED, protected))
            return PruneAction.PROTECTED
        self._end(record, reason)
        came = _worst([self._delete(target, reason) for target in pods])
        if came is PruneAction.DELETED:
            came = self._wait_until_gone(record.key, reason)
        return self._forget(record.key, reason) if came is PruneAction.DELETED else came

    def _objects(self, key: JobKey) -> list[Target]:
        """Everything of the job but its record."""
        selector = f"{MANAGED_BY}={MANAGER},{SOURCE}={self.removal.source},{JOB}={key.name}"
        found = [
            Target(resource, metadata)
            for resource in _KINDS
            for page in pages(self.client, resource, key.namespace, selector)
            for metadata in page
        ]
        return [target for target in found if not target.is_record]

    def _end(self, record: Record, reason: str) -> None:
        """Write the outcome down, so that a pass that is cut short leaves a true record."""
        current: Record | None = record
        for _ in range(_MOST_WRITES):
            if current is None or current.state.is_final:
                return
            outcome = self._outcome(current, reason)
            attempt, now = current.open_attempt, self.client.now()
            over = (
                with_attempt_closed(current, attempt, outcome, now)
                if attempt
                else finished(current, outcome, now)
            )
            try:
                write_record(self.client, over)
            except (ConflictError, AlreadyExistsError):
                current = read_record(self.client, record.key)
            else:
                return
        raise EngineError("its record keeps changing")

    def _outcome(self, record: Record, reason: str) -> Outcome:
        attempt = record.open_attempt
        ref = Ref("Pod", record.key.namespace, attempt.pod) if attempt else None
        pod = api.get(self.client, ref) if ref else None
        if pod is not None and attempt is not None and pod["metadata"]["uid"] == attempt.uid:
            return read_end(pod) or Outcome(Reason.CANCELLED, reason)
        return Outcome(Reason.CANCELLED, reason)

    def _delete(self, target: Target, reason: str) -> PruneAction:
        """DELETED if the object is gone, or on its way."""
        if target.metadata.get("deletionTimestamp"):
            return PruneAction.DELETED
        if not self.brake.take():
            self.tally.add(target.braked(reason))
            return PruneAction.KEPT
        deleter = Deleter(self.client, Rescue(self.client))
        entry = deleter.delete(target, reason, lambda fresh: _held(fresh, reason))
        if entry is None or entry.action is not PruneAction.DELETED:
            self.brake.give_back()
        if entry is None:
            return PruneAction.DELETED
        self.tally.add(entry)
        return entry.action

    def _wait_until_gone(self, key: JobKey, reason: str) -> PruneAction:
        """DELETED once nothing of the job is left; what no pod owns any more is deleted, too."""
        deadline, wait = time.monotonic() + _LONGEST_END, 0.05
        asked: set[str] = set()
        while left := self._objects(key):
            if time.monotonic() > deadline:
                self._failed(key, f"{reason}; {left[0].ref} is still there")
                return PruneAction.FAILED
            if not any(target.resource is PODS for target in left):
                fresh = [target for target in left if target.uid not in asked]
                asked |= {target.uid for target in fresh}
                came = _worst([self._delete(target, reason) for target in fresh])
                if came is not PruneAction.DELETED:
                    return came
            time.sleep(wait)
            wait = min(1.0, wait * 2)
        return PruneAction.DELETED

    def _forget(self, key: JobKey, reason: str) -> PruneAction:
        metadata = api.get_metadata(self.client, _ref(key))
        if metadata is None:
            return PruneAction.DELETED
        target = Target(CONFIG_MAPS, metadata)
        if not target.is_record or target.labels.get(SOURCE) != self.removal.source:
            return PruneAction.KEPT
        if not self.brake.take():
            self.tally.add(target.braked(reason))
            return PruneAction.KEPT
        try:
            api.delete(
                self.client,
                target.ref,
                uid=target.uid,
                version=metadata["resourceVersion"],
            )
        except EngineError:
            self.brake.give_back()
            raise
        self.tally.add(target.deleted(reason))
        return PruneAction.DELETED

    def _failed(self, key: JobKey, words: str) -> None:
        self.tally.add(PruneEntry(_ref(key), PruneAction.FAILED, words))


def _worst(actions: Iterable[PruneAction]) -> PruneAction:
    """FAILED before anything that stays for a reason; DELETED only if all are."""
    found = set(actions) - {PruneAction.DELETED}
    if PruneAction.FAILED in found:
        return PruneAction.FAILED
    return min(found, default=PruneAction.DELETED)


def _held(target: Target, reason: str) -> Verdict | None:
    annotations = target.metadata.get("annotations") or {}
    if annotations.get(HOLD, "false") != "false":
        return Protected(f"{HOLD} is true")
    return Delete(reason)


def _ref(key: JobKey) -> Ref:
    return Ref("ConfigMap", key.namespace, record_name(key.name))
