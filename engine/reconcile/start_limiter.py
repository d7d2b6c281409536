"""A limit on new runs: lost records, or a mistyped namespace, would start every job of a source.

The new runs of one reading of the specs begin together, or not at all.
"""

import threading
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from engine.api.model import Job, Limits
from engine.errors import BrokenRecordError, UsageError
from engine.informers.factory import InformerFactory
from engine.lifecycle.max_starts import MaxStarts, NewRun, new_run
from engine.reconcile.job_store import Changes, JobStore
from engine.refs import JobKey

_MORE_MAY_FOLLOW = 3.0
"""Seconds after the last record that went."""


@dataclass(slots=True)
class _Batch:
    """Jobs that one reading of the specs added or changed, and that may not begin yet."""

    keys: frozenset[JobKey]
    suspended: frozenset[JobKey] = frozenset()
    """Those of them that are too many."""
    due: float = 0.0
    """When they may be counted. Jobs whose records are gone have one: more may follow."""


class StartLimiter:
    """Holds back the new runs of an engine that stays, until they are counted.

    Each reading of the specs is one batch, so that too many jobs of one author suspend no others. A
    batch is counted once its namespaces have been read, without those that can't be read, and again
    as long as it is suspended. Safe to use from several threads.
    """

    def __init__(self, store: JobStore, informers: InformerFactory, flag: int | None) -> None:
        self.limit = MaxStarts(None)
        self._store = store
        self._informers = informers
        self._flag = flag
        self._lock = threading.Lock()
        self._batches: list[_Batch] = []

    def __contains__(self, key: JobKey) -> bool:
        with self._lock:
            return any(key in batch.keys for batch in self._batches)

    @property
    def suspended(self) -> list[JobKey]:
        """Jobs that are too many."""
        with self._lock:
            return sorted(key for batch in self._batches for key in batch.suspended)

    def configure(self, limits: Limits) -> None:
        """Put `limits` in force."""
        self.limit = MaxStarts.of(self._flag, limits)

    def sync(self, jobs: Mapping[JobKey, Job]) -> Changes:
        """Make `jobs` the desired ones; no worker starts a new one before `release`."""
        with self._lock:
            changes = self._store.update(jobs)
            new = frozenset((*changes.added, *changes.changed))
            for batch in self._batches:
                batch.keys -= new.union(changes.removed)
                batch.suspended &= batch.keys
            if self.limit.limit is not None:
                self._batches.append(_Batch(new))
            return changes

    def recount(self, key: JobKey) -> None:
        """A job's record is gone: it counts with the others of which that is so, as one reading."""
        with self._lock:
            if self.limit.limit is not None:
                lost = next((batch for batch in self._batches if batch.due), _Batch(frozenset()))
                if not lost.due:
                    self._batches.append(lost)
                lost.keys |= {key}
                lost.due = time.monotonic() + _MORE_MAY_FOLLOW

    def release(self) -> tuple[frozenset[JobKey], list[UsageError]]:
        """The jobs that may go on now, and an error for each batch that is newly suspended."""
        released: frozenset[JobKey] = frozenset()
        errors: list[UsageError] = []
        informers = self._informers
        with self._lock:
            for batch in self._batches:
                if time.monotonic() < batch.due:
                    continue
                keys = frozenset(k for k in batch.keys if not informers.is_failing(k.namespace))
                found = self.new_runs(keys)
                if found is None:
                    continue
                suspended: frozenset[JobKey] = frozenset()
                try:
                    self.limit.check(found)
                except UsageError as error:
                    suspended = frozenset(found)
                    if not suspended <= batch.suspended:
                        errors.append(error)
                released |= keys - suspended
                batch.keys -= keys - suspended
                batch.suspended = suspended
            self._batches = [batch for batch in self._batches if batch.keys]
        return released, errors

    def new_runs(self, keys: Iterable[JobKey]) -> dict[JobKey, NewRun] | None:
        """The jobs that would start a new run; None before all of their namespaces were read."""
        found: dict[JobKey, NewRun] = {}
        informers = self._informers
        for key in keys:
            if not informers.has_synced(key.namespace):
                return None
            job, pods = self._store.desired.get(key), informers.pods(key.namespace).items(key)
            with suppress(BrokenRecordError):
                record = informers.records(key.namespace).newest(key, None)
                why = new_run(job, record, pods) if job is not None else None
                if why is not None:
                    found[key] = why
        return found
