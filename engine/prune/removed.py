"""Jobs whose spec is gone from their source: cancel them, remove their objects, forget them last.

The record is what makes a job the source's own. As long as anything of the job may still be there
the record is, too, so that the next pass can go on.
"""

import time
from concurrent.futures import ThreadPoolExecutor

from engine.cluster.api import PODS
from engine.cluster.records import RecordList, read_record
from engine.errors import ClusterError
from engine.lifecycle.record import Record
from engine.prune.candidate import PruneCandidate, objects_of, record_candidate, record_ref
from engine.prune.delete import Deleter, error_text
from engine.prune.result import DryRun, OnEntry, PruneAction, PruneEntry
from engine.prune.rule import Verdict
from engine.refs import JobKey
from engine.wellknown import HOLD, SOURCE

_MAX_END = 90.0
_GONE = (PruneAction.DELETED, PruneAction.WOULD_DELETE)


class JobRemover:
    """Removes jobs of one source in one pass; safe to use from several threads.

    Guarantees: a record goes only after everything else of its job is confirmed gone, and only in
    the version that was read then. Errors: none; each is an entry, and leaves its job's record.
    """

    def __init__(self, deleter: Deleter, source: str, on_entry: OnEntry) -> None:
        self._deleter = deleter
        self._client = deleter.client
        self._source = source
        self._on_entry = on_entry
        self._reason = f"its spec was removed from source {source}"

    def remove_all(self, gone: RecordList, concurrency: int) -> None:
        """Remove the jobs that were found without a spec, and no others."""
        for key, error in gone.invalid.items():
            self._report(PruneEntry(record_ref(key), PruneAction.INVALID, str(error)))
        if gone.items:
            with ThreadPoolExecutor(concurrency, "remove") as pool:
                list(pool.map(self.remove, gone.items))

    def remove(self, key: JobKey) -> bool:
        """Whether something failed, so that another try soon may succeed."""
        try:
            return self._remove(key) is PruneAction.FAILED
        except Exception as error:  # noqa: BLE001 - one job must not stop the others
            words = error_text(error)
            self._report(PruneEntry(record_ref(key), PruneAction.FAILED, words))
        return True

    def _remove(self, key: JobKey) -> PruneAction:
        """The action for the job as a whole. Errors: ClusterError."""
        record = read_record(self._client, key)
        if record is None or record.source != self._source:  # another source's by now
            return PruneAction.KEPT
        found = objects_of(self._client, record)
        if any(self._evaluate(candidate)[0] is PruneAction.PROTECTED for candidate in found):
            words = f"{self._reason}; {HOLD} is true on an object of its job"
            return self._report(PruneEntry(record_ref(key), PruneAction.PROTECTED, words))
        action = self._delete_all([one for one in found if one.resource is PODS])
        if action in _GONE and self._deleter.dry_run is DryRun.NONE:
            action = self._wait_until_gone(record)
        return self._delete_record(record) if action in _GONE else action

    def _delete_all(self, candidates: list[PruneCandidate]) -> PruneAction:
        """FAILED before anything that stays for a reason; DELETED if all are gone or going."""
        actions = {PruneAction.DELETED}
        for candidate in candidates:
            if not candidate.metadata.get("deletionTimestamp"):
                entry = self._deleter.delete(candidate, self._reason, self._evaluate)
                actions.add(self._report(entry))
        if PruneAction.FAILED in actions:
            return PruneAction.FAILED
        return min(actions - {PruneAction.DELETED}, default=PruneAction.DELETED)

    def _wait_until_gone(self, record: Record) -> PruneAction:
        """DELETED once nothing of the job is left; an object that no pod owns is deleted, too."""
        deadline, wait = time.monotonic() + _MAX_END, 0.05
        asked: set[str] = set()
        while left := objects_of(self._client, record):
            if time.monotonic() > deadline:
                raise ClusterError(f"{self._reason}; {left[0].ref} is still there")
            if not any(candidate.resource is PODS for candidate in left):
                action = self._delete_all([one for one in left if one.uid not in asked])
                asked.update(candidate.uid for candidate in left)
                if action is not PruneAction.DELETED:
                    return action
            time.sleep(wait)
            wait = min(1.0, wait * 2)
        return PruneAction.DELETED

    def _delete_record(self, record: Record) -> PruneAction:
        """A record that changes meanwhile may be of a job that has begun again."""
        versions: set[str] = set()

        def evaluate(fresh: PruneCandidate) -> Verdict:
            versions.add(fresh.metadata["resourceVersion"])
            if len(versions) > 1:
                raise ClusterError("its record has changed meanwhile")
            if fresh.labels.get(SOURCE) != self._source:
                return PruneAction.KEPT, "it belongs to another source by now"
            return PruneAction.DELETED, self._reason

        candidate = record_candidate(record)
        return self._report(self._deleter.delete(candidate, self._reason, evaluate))

    def _evaluate(self, candidate: PruneCandidate) -> Verdict:
        annotations = candidate.metadata.get("annotations") or {}
        if annotations.get(HOLD, "false") != "false":
            return PruneAction.PROTECTED, f"{HOLD} is true"
        return PruneAction.DELETED, self._reason

    def _report(self, entry: PruneEntry | None) -> PruneAction:
        if entry is None:
            return PruneAction.DELETED
        self._on_entry(entry)
        return entry.action
