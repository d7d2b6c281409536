"""Jobs whose spec is gone from their source: cancel them, remove their objects, forget them last.

The record is what makes a job the source's own. As long as anything of the job may still be there
the record is, too, so that the next pass can go on.
"""

import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from msgspec import Struct

from engine.cluster.api import PODS
from engine.cluster.records import CONFIG_MAP_RECORDS, RecordList, read_record
from engine.lifecycle.ownership import OwnRecord
from engine.lifecycle.record import Record
from engine.prune.candidate import PruneCandidate, objects_of, record_candidate
from engine.prune.delete import Deleter, error_text
from engine.prune.result import DryRun, OnEntry, PruneAction, PruneEntry
from engine.prune.rule import Verdict, is_stuck, waiting_for_finalizers
from engine.refs import JobKey
from engine.wellknown import HOLD

_MAX_END = 90.0


class JobRemover(Struct, frozen=True):
    """Removes jobs of one source in one pass; safe to use from several threads.

    Guarantees: a record goes only after everything else of its job is confirmed gone, and only in
    a version that was judged; once another run has begun, it stays. Errors: none; each is an entry,
    and leaves its job's record.
    """

    deleter: Deleter
    source: str
    on_entry: OnEntry

    @property
    def _reason(self) -> str:
        return f"its spec was removed from source {self.source}"

    def remove_all(self, gone: RecordList, concurrency: int) -> None:
        """Remove the jobs that were found without a spec, and no others."""
        for key, error in gone.invalid.items():
            self._report_job(key, PruneAction.INVALID, str(error))
        if gone.items:
            with ThreadPoolExecutor(concurrency, "remove") as pool:
                list(pool.map(self._remove_to_its_end, gone.items.values()))

    def _remove_to_its_end(self, judged: Record) -> None:
        deadline, wait = time.monotonic() + _MAX_END, 0.05
        while self.remove(judged) is None:
            if time.monotonic() > deadline:
                words = f"{self._reason}; something of it is still there"
                self._report_job(judged.key, PruneAction.FAILED, words)
                return
            time.sleep(wait)
            wait = min(1.0, wait * 2)

    def remove(self, judged: Record) -> PruneAction | None:
        """Delete what may go now; what became of the job, None while something is yet to go.

        `judged` is the record as it was when the job was found without a spec.
        """
        try:
            return self._remove(judged)
        except Exception as error:  # noqa: BLE001 - one job must not stop the others
            return self._report_job(judged.key, PruneAction.FAILED, error_text(error))

    def _remove(self, judged: Record) -> PruneAction | None:
        """Errors: ClusterError."""
        action, why = self._judge_record(judged)
        if action is not PruneAction.DELETED:
            return self._report_job(judged.key, action, why) if why else action
        own, foreign = objects_of(self.deleter.client, judged)
        self.deleter.foreign |= foreign
        if any(self._evaluate(candidate)[0] is PruneAction.PROTECTED for candidate in own):
            words = f"{self._reason}; {HOLD} is true on an object of its job"
            return self._report_job(judged.key, PruneAction.PROTECTED, words)
        stuck = [one for one in own if self._is_stuck(one)]
        actions = {
            self._report(self.deleter.delete(one, self._reason, self._evaluate))
            for one in own
            if one.resource is PODS and "deletionTimestamp" not in one.metadata
        }
        if stuck or PruneAction.FAILED in actions:
            return PruneAction.FAILED
        if stays := actions - {PruneAction.DELETED, PruneAction.WOULD_DELETE}:
            return min(stays)
        if own and self.deleter.dry_run is DryRun.NONE:
            return None  # a pod ends, or the garbage collector deletes what it owned
        candidate = record_candidate(judged, OwnRecord(judged.key))
        evaluate = partial(self._evaluate_record, judged)
        return self._report(self.deleter.delete(candidate, self._reason, evaluate))

    def _is_stuck(self, candidate: PruneCandidate) -> bool:
        """Whether a finalizer holds an object that should be gone by now; that is reported."""
        if not is_stuck(candidate.metadata, self.deleter.client.now()):
            return False
        waits = waiting_for_finalizers(candidate.metadata)
        self._report(candidate.entry(PruneAction.FAILED, f"{self._reason}; {waits}"))
        return True

    def _evaluate_record(self, judged: Record, fresh: PruneCandidate) -> Verdict:
        """Again, if another has written it; the delete names the version that `fresh` has."""
        if fresh.metadata["resourceVersion"] == judged.version:
            return PruneAction.DELETED, self._reason
        return self._judge_record(judged)

    def _judge_record(self, judged: Record) -> Verdict:
        record = read_record(self.deleter.client, judged.key)
        if record is None or record.source != self.source:
            return PruneAction.KEPT, ""
        if record.has_begun_since(judged):
            return PruneAction.KEPT, "another engine has begun a run of its job meanwhile"
        return PruneAction.DELETED, self._reason

    def _evaluate(self, candidate: PruneCandidate) -> Verdict:
        annotations = candidate.metadata.get("annotations") or {}
        if annotations.get(HOLD, "false") != "false":
            return PruneAction.PROTECTED, f"{HOLD} is true"
        return PruneAction.DELETED, self._reason

    def _report_job(self, key: JobKey, action: PruneAction, words: str) -> PruneAction:
        return self._report(PruneEntry(CONFIG_MAP_RECORDS.ref(key), action, words))

    def _report(self, entry: PruneEntry | None) -> PruneAction:
        if entry is None:
            return PruneAction.DELETED
        self.on_entry(entry)
        return entry.action
