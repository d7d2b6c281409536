"""Jobs whose spec is gone from their source: cancel them, remove their objects, forget them last.

The record is what makes a job the source's own. As long as anything of the job may still be there
the record is, too, so that the next pass can go on.
"""

import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from engine.cluster import api
from engine.cluster.api import PODS
from engine.cluster.records import RecordList, read_record
from engine.lifecycle.ownership import OwnRecord
from engine.lifecycle.record import Record
from engine.prune.candidate import PruneCandidate, objects_of, record_candidate, record_ref
from engine.prune.delete import Deleter, error_text
from engine.prune.result import DryRun, OnEntry, PruneAction, PruneEntry
from engine.prune.rule import Verdict, waiting_for_finalizers
from engine.wellknown import HOLD

_MAX_END = 90.0
_GONE = (PruneAction.DELETED, PruneAction.WOULD_DELETE)


class JobRemover:
    """Removes jobs of one source in one pass; safe to use from several threads.

    Guarantees: a record goes only after everything else of its job is confirmed gone, and only in
    a version that was judged; once another run has begun, it stays. Errors: none; each is an entry,
    and leaves its job's record.
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
                list(pool.map(self.remove, gone.items.values()))

    def remove(self, judged: Record) -> bool:
        """Whether something failed, so that another try soon may succeed.

        `judged` is the record as it was when the job was found without a spec.
        """
        try:
            return self._remove(judged) is PruneAction.FAILED
        except Exception as error:  # noqa: BLE001 - one job must not stop the others
            words = error_text(error)
            self._report(PruneEntry(record_ref(judged.key), PruneAction.FAILED, words))
        return True

    def _remove(self, judged: Record) -> PruneAction:
        """The action for the job as a whole. Errors: ClusterError."""
        action, why = self._judge_record(judged)
        if action is not PruneAction.DELETED:
            entry = PruneEntry(record_ref(judged.key), action, why)
            return self._report(entry) if why else action
        own, foreign = objects_of(self._client, judged)
        self._deleter.foreign |= foreign
        if any(self._evaluate(candidate)[0] is PruneAction.PROTECTED for candidate in own):
            words = f"{self._reason}; {HOLD} is true on an object of its job"
            return self._report(PruneEntry(record_ref(judged.key), PruneAction.PROTECTED, words))
        stuck = [one for one in own if "deletionTimestamp" in one.metadata and self._is_stuck(one)]
        action = self._delete_all(one for one in own if one.resource is PODS)
        if stuck or action not in _GONE:
            return PruneAction.FAILED if stuck else action
        if self._deleter.dry_run is DryRun.NONE and not self._wait_until_gone(own):
            return PruneAction.FAILED
        candidate = record_candidate(judged, OwnRecord(judged.key))
        evaluate = partial(self._evaluate_record, judged)
        return self._report(self._deleter.delete(candidate, self._reason, evaluate))

    def _delete_all(self, candidates: Iterable[PruneCandidate]) -> PruneAction:
        """FAILED before anything that stays for a reason; DELETED if all are gone or going."""
        actions = {PruneAction.DELETED}
        for candidate in candidates:
            if "deletionTimestamp" not in candidate.metadata:
                entry = self._deleter.delete(candidate, self._reason, self._evaluate)
                actions.add(self._report(entry))
        if PruneAction.FAILED in actions:
            return PruneAction.FAILED
        return min(actions - {PruneAction.DELETED}, default=PruneAction.DELETED)

    def _wait_until_gone(self, own: list[PruneCandidate]) -> bool:
        """Whether each is gone: a pod, or what the garbage collector deletes with its pod.

        What a finalizer holds is reported, and not waited for.
        """
        deadline, wait = time.monotonic() + _MAX_END, 0.05
        for one in own:
            metadata = api.get_metadata(self._client, one.ref, one.resource)
            while metadata is not None and metadata["uid"] == one.uid:
                if self._is_stuck(PruneCandidate(one.resource, metadata, one.proof)):
                    return False
                if time.monotonic() > deadline:
                    words = f"{self._reason}; {one.ref} is still there"
                    self._report(one.entry(PruneAction.FAILED, words))
                    return False
                time.sleep(wait)
                wait = min(1.0, wait * 2)
                metadata = api.get_metadata(self._client, one.ref, one.resource)
        return True

    def _is_stuck(self, candidate: PruneCandidate) -> bool:
        """Whether a finalizer holds an object that is being deleted; that is reported."""
        waits = waiting_for_finalizers(candidate.metadata)
        if waits and "deletionTimestamp" in candidate.metadata:
            self._report(candidate.entry(PruneAction.FAILED, f"{self._reason}; {waits}"))
            return True
        return False

    def _evaluate_record(self, judged: Record, fresh: PruneCandidate) -> Verdict:
        """Again, if another has written it; the delete names the version that `fresh` has."""
        if fresh.metadata["resourceVersion"] == judged.version:
            return PruneAction.DELETED, self._reason
        return self._judge_record(judged)

    def _judge_record(self, judged: Record) -> Verdict:
        record = read_record(self._client, judged.key)
        if record is None or record.source != self._source:
            return PruneAction.KEPT, ""
        if record.has_begun_since(judged):
            return PruneAction.KEPT, "another engine has begun a run of its job meanwhile"
        return PruneAction.DELETED, self._reason

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
