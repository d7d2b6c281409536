"""Jobs whose spec is gone from their source: cancel them, remove their objects, forget them last.

The record is what makes a job the source's own. As long as anything of the job may still be there
the record is, too, so that the next pass can go on.
"""

import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from engine.cluster import api
from engine.cluster.api import CONFIG_MAPS, PODS, SECRETS
from engine.cluster.client import Client
from engine.cluster.records import RecordList, read_record
from engine.errors import ClusterError, EngineError
from engine.lifecycle.record import Record
from engine.prune.candidate import PruneCandidate, record_ref
from engine.prune.delete import DeleteBudget, Deleter, error_text
from engine.prune.result import DryRun, OnEntry, PruneAction, PruneEntry
from engine.prune.rule import Delete, Protected, Verdict
from engine.prune.run import list_metadata
from engine.refs import JobKey, Ref
from engine.wellknown import HOLD, JOB, MANAGED_BY, MANAGER, SOURCE

_MAX_END = 90.0
_KINDS = (PODS, SECRETS, CONFIG_MAPS)
_ON_HOLD = Protected(f"{HOLD} is true")


class JobRemover:
    """Removes jobs of one source in one pass; safe to use from several threads.

    Guarantees: a record goes only after everything else of its job is confirmed gone, and only in
    the version that was read then. Errors: none; each is an entry, and leaves its job's record.
    """

    def __init__(
        self,
        client: Client,
        source: str,
        on_entry: OnEntry,
        budget: DeleteBudget,
        logs_dir: Path | None = None,
        dry_run: DryRun = DryRun.NONE,
    ) -> None:
        self._client = client
        self._source = source
        self._on_entry = on_entry
        self._dry_run = dry_run
        self._reason = f"its spec was removed from source {source}"
        self._deleter = Deleter(client, budget, dry_run=dry_run, logs_dir=logs_dir)

    def remove_all(self, gone: RecordList, concurrency: int) -> None:
        """Remove the jobs that were found without a spec, and no others."""
        for key, error in gone.invalid.items():
            self._on_entry(PruneEntry(record_ref(key), PruneAction.INVALID, str(error)))
        if gone.items:
            with ThreadPoolExecutor(concurrency, "remove") as pool:
                list(pool.map(self.remove, gone.items))

    def remove(self, key: JobKey) -> bool:
        """Whether something failed, so that another try soon may succeed."""
        try:
            return self._remove(key) is PruneAction.FAILED
        except EngineError as error:
            self._failed(key, error_text(error))
        except Exception as error:  # noqa: BLE001 - one job must not stop the others
            self._failed(key, f"internal error: {type(error).__name__}: {error}")
        return True

    def _remove(self, key: JobKey) -> PruneAction:
        """The action for the job as a whole."""
        record = read_record(self._client, key)
        if record is None or record.source != self._source:  # another source's by now
            return PruneAction.KEPT
        candidates = self._objects(record)
        if any(_evaluate(candidate, "") == _ON_HOLD for candidate in candidates):
            words = f"{self._reason}; {HOLD} is true on an object of its job"
            self._on_entry(PruneEntry(record_ref(key), PruneAction.PROTECTED, words))
            return PruneAction.PROTECTED
        pods = [candidate for candidate in candidates if candidate.resource is PODS]
        action = _most_severe([self._delete(candidate) for candidate in pods])
        if action is PruneAction.DELETED and self._dry_run is DryRun.NONE:
            action = self._wait_until_gone(record)
        if action in (PruneAction.DELETED, PruneAction.WOULD_DELETE):
            return self._delete_record(key)
        return action

    def _objects(self, record: Record) -> list[PruneCandidate]:
        """Everything of the job but its record; its last pod whatever labels that has by now."""
        key, last = record.key, record.last
        selector = f"{MANAGED_BY}={MANAGER},{SOURCE}={self._source},{JOB}={key.name}"
        found = [
            PruneCandidate(resource, metadata)
            for resource in _KINDS
            for page in list_metadata(self._client, resource, key.namespace, selector)
            for metadata in page
        ]
        if last is not None and last.uid not in {"", *(candidate.uid for candidate in found)}:
            pod = api.get_metadata(self._client, Ref("Pod", key.namespace, last.pod))
            if pod is not None and pod["uid"] == last.uid:
                found.append(PruneCandidate(PODS, pod))
        return [candidate for candidate in found if not candidate.is_record]

    def _delete(self, candidate: PruneCandidate) -> PruneAction:
        """DELETED if the object is gone, or on its way."""
        if candidate.metadata.get("deletionTimestamp"):
            return PruneAction.DELETED
        evaluate = partial(_evaluate, reason=self._reason)
        return self._report(self._deleter.delete(candidate, self._reason, evaluate))

    def _wait_until_gone(self, record: Record) -> PruneAction:
        """DELETED once nothing of the job is left; an object that no pod owns is deleted, too."""
        deadline, wait = time.monotonic() + _MAX_END, 0.05
        asked: set[str] = set()
        while left := self._objects(record):
            if time.monotonic() > deadline:
                self._failed(record.key, f"{self._reason}; {left[0].ref} is still there")
                return PruneAction.FAILED
            if not any(candidate.resource is PODS for candidate in left):
                fresh = [candidate for candidate in left if candidate.uid not in asked]
                asked |= {candidate.uid for candidate in fresh}
                action = _most_severe([self._delete(candidate) for candidate in fresh])
                if action is not PruneAction.DELETED:
                    return action
            time.sleep(wait)
            wait = min(1.0, wait * 2)
        return PruneAction.DELETED

    def _delete_record(self, key: JobKey) -> PruneAction:
        metadata = api.get_metadata(self._client, record_ref(key))
        if metadata is None:
            return PruneAction.DELETED
        candidate = PruneCandidate(CONFIG_MAPS, metadata)
        if not candidate.is_record or candidate.labels.get(SOURCE) != self._source:
            return PruneAction.KEPT

        def evaluate(fresh: PruneCandidate) -> Verdict:
            """A record that has changed may be of a job that has begun again."""
            if fresh.metadata["resourceVersion"] != metadata["resourceVersion"]:
                raise ClusterError("its record has changed meanwhile")
            return Delete(self._reason)

        return self._report(self._deleter.delete(candidate, self._reason, evaluate))

    def _report(self, entry: PruneEntry | None) -> PruneAction:
        if entry is None:
            return PruneAction.DELETED
        self._on_entry(entry)
        return entry.action

    def _failed(self, key: JobKey, words: str) -> None:
        self._on_entry(PruneEntry(record_ref(key), PruneAction.FAILED, words))


def _most_severe(actions: Iterable[PruneAction]) -> PruneAction:
    """FAILED before anything that stays for a reason; DELETED only if all are."""
    found = set(actions) - {PruneAction.DELETED}
    if PruneAction.FAILED in found:
        return PruneAction.FAILED
    return min(found, default=PruneAction.DELETED)


def _evaluate(candidate: PruneCandidate, reason: str) -> Verdict:
    annotations = candidate.metadata.get("annotations") or {}
    return _ON_HOLD if annotations.get(HOLD, "false") != "false" else Delete(reason)
