"""Jobs whose spec is gone from their source: cancel them, remove their objects, forget them last.

The record is what makes a job the source's own. As long as anything of the job may still be there
the record is, too, so that the next pass can go on.
"""

import time
from collections.abc import Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from engine.cluster import api
from engine.cluster.api import CONFIG_MAPS, PODS, SECRETS
from engine.cluster.client import Client
from engine.cluster.records import RecordList, list_records, read_record, write_record
from engine.decide.prune.rule import Delete, Protected, Verdict
from engine.decide.record import Record, finished
from engine.decide.transitions import with_attempt_closed
from engine.errors import AlreadyExistsError, ConflictError, EngineError, ForbiddenError
from engine.prune.candidate import PruneCandidate
from engine.prune.delete import DeleteBudget, Deleter, error_text
from engine.prune.options import DryRun
from engine.prune.outcome_keeper import OutcomeKeeper
from engine.prune.result import OnEntry, PruneAction, PruneEntry, PruneResult, ResultCollector
from engine.prune.run import list_metadata
from engine.refs import JobKey, Ref, record_name
from engine.runtime.retry import TRIES, retry_transient
from engine.status.deletion import read_end
from engine.status.outcome import Outcome, Reason
from engine.wellknown import HOLD, JOB, MANAGED_BY, MANAGER, SOURCE

_MOST_WRITES = 5
_LONGEST_END = 90.0
_KINDS = (PODS, SECRETS, CONFIG_MAPS)


def find_gone(
    client: Client, source: str, living: Collection[JobKey], namespaces: Iterable[str]
) -> RecordList:
    """Records of the source's jobs that are not among the `living`, in the order of their names.

    `namespaces` are where to look for them if the engine may not look everywhere.
    Errors: those of the list, once it has failed several times.
    """
    retry = partial(retry_transient, tries=TRIES)
    selector = f"{SOURCE}={source}"
    try:
        listed = [retry(lambda: list_records(client, "", selector))]
    except ForbiddenError:
        listed = [retry(partial(list_records, client, name, selector)) for name in namespaces]
    gone = RecordList()
    for records in listed:
        gone.items.update((k, r) for k, r in sorted(records.items.items()) if k not in living)
        gone.invalid.update((k, e) for k, e in sorted(records.invalid.items()) if k not in living)
    return gone


def remove_gone(
    client: Client,
    source: str,
    gone: RecordList,
    on_entry: OnEntry,
    *,
    max_deletes: int | None = None,
    concurrency: int = 8,
    logs_dir: Path | None = None,
    dry_run: DryRun = DryRun.NONE,
) -> PruneResult:
    """Remove the jobs that `find_gone` found, and no others.

    Guarantees: a record goes only after everything else of its job is confirmed gone, and only in
    the version that was read. Errors: among the result's; each leaves its job's record in place.
    """
    collector = ResultCollector(on_entry)
    remover = JobRemover(client, source, collector, DeleteBudget(max_deletes), logs_dir, dry_run)
    for key, error in gone.invalid.items():
        collector.add(PruneEntry(_ref(key), PruneAction.INVALID, str(error)))
    if gone.items:
        with ThreadPoolExecutor(concurrency, "remove") as pool:
            list(pool.map(remover.remove, gone.items))
    return collector.result()


class JobRemover:
    """Removes jobs of one source in one pass; safe to use from several threads."""

    def __init__(
        self,
        client: Client,
        source: str,
        collector: ResultCollector,
        budget: DeleteBudget,
        logs_dir: Path | None = None,
        dry_run: DryRun = DryRun.NONE,
    ) -> None:
        self._client = client
        self._source = source
        self._collector = collector
        self._budget = budget
        self._dry_run = dry_run
        self._deleter = Deleter(client, OutcomeKeeper(client, logs_dir), budget, dry_run)

    def remove(self, key: JobKey) -> bool:
        """Whether something failed, so that another try soon may do better than this one.

        Errors: none; what failed is in the result, and the job's record stays.
        """
        try:
            return self._remove(key) is PruneAction.FAILED
        except EngineError as error:
            self._failed(key, error_text(error))
        except Exception as error:  # noqa: BLE001 - one job must not stop the others
            self._failed(key, f"internal error: {type(error).__name__}: {error}")
        return True

    def _remove(self, key: JobKey) -> PruneAction:
        """What became of the job as a whole; it may be another source's by now."""
        record = read_record(self._client, key)
        if record is None or record.source != self._source:
            return PruneAction.KEPT
        reason = f"its spec was removed from source {self._source}"
        candidates = self._objects(record.key)
        pods = [candidate for candidate in candidates if candidate.resource is PODS]
        if any(isinstance(_verdict(candidate, reason), Protected) for candidate in candidates):
            protected = f"{reason}; {HOLD} is true on an object of its job"
            self._collector.add(PruneEntry(_ref(record.key), PruneAction.PROTECTED, protected))
            return PruneAction.PROTECTED
        if self._dry_run is DryRun.NONE:
            self._finalize_record(record, reason)
        came = _most_severe([self._delete(candidate, reason) for candidate in pods])
        if came is PruneAction.DELETED and self._dry_run is DryRun.NONE:
            came = self._wait_until_gone(key, reason)
        if came not in (PruneAction.DELETED, PruneAction.WOULD_DELETE):
            return came
        return self._delete_record(key, reason)

    def _objects(self, key: JobKey) -> list[PruneCandidate]:
        """Everything of the job but its record."""
        selector = f"{MANAGED_BY}={MANAGER},{SOURCE}={self._source},{JOB}={key.name}"
        found = [
            PruneCandidate(resource, metadata)
            for resource in _KINDS
            for page in list_metadata(self._client, resource, key.namespace, selector)
            for metadata in page
        ]
        return [candidate for candidate in found if not candidate.is_record]

    def _finalize_record(self, record: Record, reason: str) -> None:
        """Write the outcome down, so that a pass that is cut short leaves a true record."""
        current: Record | None = record
        for _ in range(_MOST_WRITES):
            if current is None or current.state.is_final:
                return
            outcome = self._outcome(current, reason)
            attempt, now = current.open_attempt, self._client.now()
            over = (
                with_attempt_closed(current, attempt, outcome, now)
                if attempt
                else finished(current, outcome, now)
            )
            try:
                write_record(self._client, over)
            except (ConflictError, AlreadyExistsError):
                current = read_record(self._client, record.key)
            else:
                return
        raise EngineError("its record keeps changing")

    def _outcome(self, record: Record, reason: str) -> Outcome:
        attempt = record.open_attempt
        ref = Ref("Pod", record.key.namespace, attempt.pod) if attempt else None
        pod = api.get(self._client, ref) if ref else None
        if pod is not None and attempt is not None and pod["metadata"]["uid"] == attempt.uid:
            return read_end(pod) or Outcome(Reason.CANCELLED, reason)
        return Outcome(Reason.CANCELLED, reason)

    def _delete(self, candidate: PruneCandidate, reason: str) -> PruneAction:
        """DELETED if the object is gone, or on its way."""
        if candidate.metadata.get("deletionTimestamp"):
            return PruneAction.DELETED
        entry = self._deleter.delete(candidate, reason, lambda fresh: _verdict(fresh, reason))
        if entry is None:
            return PruneAction.DELETED
        self._collector.add(entry)
        return entry.action

    def _wait_until_gone(self, key: JobKey, reason: str) -> PruneAction:
        """DELETED once nothing of the job is left; what no pod owns any more is deleted, too."""
        deadline, wait = time.monotonic() + _LONGEST_END, 0.05
        asked: set[str] = set()
        while left := self._objects(key):
            if time.monotonic() > deadline:
                self._failed(key, f"{reason}; {left[0].ref} is still there")
                return PruneAction.FAILED
            if not any(candidate.resource is PODS for candidate in left):
                fresh = [candidate for candidate in left if candidate.uid not in asked]
                asked |= {candidate.uid for candidate in fresh}
                came = _most_severe([self._delete(candidate, reason) for candidate in fresh])
                if came is not PruneAction.DELETED:
                    return came
            time.sleep(wait)
            wait = min(1.0, wait * 2)
        return PruneAction.DELETED

    def _delete_record(self, key: JobKey, reason: str) -> PruneAction:
        metadata = api.get_metadata(self._client, _ref(key))
        if metadata is None:
            return PruneAction.DELETED
        candidate = PruneCandidate(CONFIG_MAPS, metadata)
        if not candidate.is_record or candidate.labels.get(SOURCE) != self._source:
            return PruneAction.KEPT
        if not self._budget.acquire():
            self._collector.add(candidate.over_budget(reason))
            return PruneAction.KEPT
        try:
            if self._dry_run is not DryRun.CLIENT:
                api.delete(
                    self._client,
                    candidate.ref,
                    uid=candidate.uid,
                    version=metadata["resourceVersion"],
                    dry_run=self._dry_run is DryRun.SERVER,
                )
        except EngineError:
            self._budget.release()
            raise
        is_real = self._dry_run is DryRun.NONE
        self._collector.add((candidate.deleted if is_real else candidate.would_delete)(reason))
        return PruneAction.DELETED

    def _failed(self, key: JobKey, words: str) -> None:
        self._collector.add(PruneEntry(_ref(key), PruneAction.FAILED, words))


def _most_severe(actions: Iterable[PruneAction]) -> PruneAction:
    """FAILED before anything that stays for a reason; DELETED only if all are."""
    found = set(actions) - {PruneAction.DELETED}
    if PruneAction.FAILED in found:
        return PruneAction.FAILED
    return min(found, default=PruneAction.DELETED)


def _verdict(candidate: PruneCandidate, reason: str) -> Verdict | None:
    annotations = candidate.metadata.get("annotations") or {}
    if annotations.get(HOLD, "false") != "false":
        return Protected(f"{HOLD} is true")
    return Delete(reason)


def _ref(key: JobKey) -> Ref:
    return Ref("ConfigMap", key.namespace, record_name(key.name))
