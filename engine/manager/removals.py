"""Jobs whose spec is gone, while the engine stays: when they may be removed, and doing it.

A file that is missing for a moment is no removal: editors and version control take a file away
before they put the new one there.
"""

import threading
import time
from collections.abc import Callable

from engine.api.model import Config
from engine.cluster.client import Client
from engine.decide.record import Record
from engine.manager.jobs import Jobs
from engine.prune.delete import DeleteBudget
from engine.prune.removed import JobRemover
from engine.prune.result import PruneEntry, ResultCollector
from engine.reconcile.watches import Watches
from engine.refs import JobKey
from engine.runtime.rate_limiter import ItemRateLimiter
from engine.telemetry.events import Emit, Notice, ObjectPruned

_GONE_FOR = 2.0


class Removals:
    """Finds and removes jobs of a source that have a record and no spec any more.

    Guarantees: nothing is removed unless `permit` was told last that the source is whole; every
    record is looked for again after `interval`, whatever became of its removal, and one whose
    removal failed sooner than that, with back-off.
    """

    def __init__(
        self,
        client: Client,
        source: str,
        jobs: Jobs,
        watches: Watches,
        interval: float,
        config: Callable[[], Config],
        emit: Emit,
    ) -> None:
        self._client = client
        self._source = source
        self._jobs = jobs
        self._watches = watches
        self._interval = interval
        self._config = config
        self._emit = emit
        self._lock = threading.Lock()
        self._objection = "the specs have not been read"
        self._told = ""
        self._since: dict[JobKey, float] = {}
        self._limit = ItemRateLimiter()
        self._pass: tuple[float, JobRemover] | None = None

    def permit(self, objection: str) -> None:
        """From now on jobs may be removed if there is no `objection` to it."""
        self._objection = objection
        if not objection:
            self._told = ""

    def due(self) -> list[JobKey]:
        """Jobs whose removal is due now."""
        records = [record for record in self._records() if not self._jobs.is_living(record.key)]
        now = time.monotonic()
        with self._lock:
            gone = {record.key for record in records}
            self._since = {key: self._since.get(key, now) for key in gone}
            late = [key for key, since in self._since.items() if now - since >= _GONE_FOR]
        if late and self._objection:
            self._object(len(late))
            return []
        return late

    def is_due(self, key: JobKey) -> bool:
        with self._lock:
            since = self._since.get(key)
        gone = since is not None and time.monotonic() - since >= _GONE_FOR
        return gone and not self._objection and not self._jobs.is_living(key)

    def remove(self, key: JobKey) -> None:
        """Remove everything of the job, its record last. Errors: none; they are told."""
        record = self._watches.records(key.namespace).newest(key, None)
        self._leave_alone(key, self._interval)
        if record is None or self._jobs.is_living(key):
            return
        if self._remover().remove(record):
            self._leave_alone(key, self._limit.when(key, longest=self._interval))
        else:
            self._limit.forget(key)

    def _leave_alone(self, key: JobKey, seconds: float) -> None:
        with self._lock:
            self._since[key] = time.monotonic() + seconds - _GONE_FOR

    def _records(self) -> list[Record]:
        return [
            record
            for namespace in self._watches.namespaces
            if self._watches.has_synced(namespace)
            for record in self._watches.records(namespace).all_records()
            if record.source == self._source
        ]

    def _remover(self) -> JobRemover:
        """One for each interval: so often the operator's limit of deletes begins anew."""
        now = time.monotonic()
        with self._lock:
            if self._pass is None or now - self._pass[0] >= self._interval:
                budget = DeleteBudget(self._config().limits.max_deletes_per_pass)
                collector = ResultCollector(self._tell)
                remover = JobRemover(self._client, self._source, collector, budget)
                self._pass = (now, remover)
            return self._pass[1]

    def _tell(self, entry: PruneEntry) -> None:
        self._emit(ObjectPruned(entry.ref, entry.action, entry.reason))

    def _object(self, count: int) -> None:
        if self._told != self._objection:
            self._told = self._objection
            jobs = f"{count} job{' has' if count == 1 else 's have'} no spec any more"
            self._emit(Notice(f"{jobs}, but nothing is removed: {self._objection}"))
