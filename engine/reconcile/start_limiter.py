"""A limit on new runs: lost records, or a mistyped namespace, would start every job of a source.

The new runs of one reading of the specs begin together, or not at all.
"""

import threading
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress

from msgspec import Struct, field

from engine.api.model import Job, Limits
from engine.errors import BrokenRecordError, UsageError
from engine.informers.factory import InformerFactory
from engine.lifecycle.max_starts import MaxStarts, NewRun, new_run
from engine.reconcile.job_store import Changes, JobStore
from engine.refs import JobKey

_MORE_MAY_FOLLOW = 3.0
"""Seconds after the last record that went."""


class StartLimiter(Struct, eq=False):
    """Holds back the new runs of an engine that stays, until they are counted.

    What one reading of the specs brings is counted together, once its namespaces have been read,
    without those that can't be read. Jobs that are too many suspend no later ones. They are counted
    again as long as they are suspended. Safe to use from several threads.
    """

    store: JobStore
    informers: InformerFactory
    flag: int | None
    limit: MaxStarts = MaxStarts(None)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _uncounted: frozenset[JobKey] = frozenset()
    """Jobs that the specs added or changed, and that may not begin yet."""
    _suspended: frozenset[JobKey] = frozenset()
    """Jobs that are too many."""
    _due: float = 0.0
    """When they may be counted: where records have gone, more may follow."""

    def __contains__(self, key: JobKey) -> bool:
        with self._lock:
            return key in self._uncounted or key in self._suspended

    @property
    def suspended(self) -> list[JobKey]:
        """Jobs that are too many."""
        return sorted(self._suspended)

    def configure(self, limits: Limits) -> None:
        """Put `limits` in force."""
        self.limit = MaxStarts.of(self.flag, limits)

    def sync(self, jobs: Mapping[JobKey, Job]) -> Changes:
        """Make `jobs` the desired ones; no worker starts a new one before `release`."""
        with self._lock:
            changes = self.store.update(jobs)
            new = frozenset((*changes.added, *changes.changed))
            self._suspended -= new.union(changes.removed)
            self._uncounted -= frozenset(changes.removed)
            if self.limit.limit is not None:
                self._uncounted |= new
            return changes

    def recount(self, key: JobKey) -> None:
        """A job's record is gone: it counts with the others of which that is so."""
        with self._lock:
            if self.limit.limit is not None:
                self._uncounted |= {key}
                self._due = time.monotonic() + _MORE_MAY_FOLLOW

    def release(self) -> tuple[frozenset[JobKey], list[UsageError]]:
        """The jobs that may go on now, and an error where more are suspended."""
        with self._lock:
            if time.monotonic() < self._due:
                return frozenset(), []
            released, too_many, errors = self._judge(self._uncounted)
            self._uncounted -= released | too_many
            again, _, _ = self._judge(self._suspended)
            self._suspended = (self._suspended - again) | too_many
            return released | again, errors

    def _judge(
        self, keys: frozenset[JobKey]
    ) -> tuple[frozenset[JobKey], frozenset[JobKey], list[UsageError]]:
        """Those that may go on, those that are too many, and the error that says so."""
        readable = frozenset(k for k in keys if not self.informers.is_failing(k.namespace))
        found = self.new_runs(readable)
        if found is None:
            return frozenset(), frozenset(), []
        try:
            self.limit.check(found)
        except UsageError as error:
            return readable - found.keys(), frozenset(found), [error]
        return readable, frozenset(), []

    def new_runs(self, keys: Iterable[JobKey]) -> dict[JobKey, NewRun] | None:
        """The jobs that would start a new run; None before all of their namespaces were read."""
        found: dict[JobKey, NewRun] = {}
        informers = self.informers
        for key in keys:
            if not informers.has_synced(key.namespace):
                return None
            job, pods = self.store.desired.get(key), informers.pods(key.namespace).items(key)
            with suppress(BrokenRecordError):
                record = informers.records(key.namespace).newest(key, None)
                why = new_run(job, record, pods) if job is not None else None
                if why is not None:
                    found[key] = why
        return found
