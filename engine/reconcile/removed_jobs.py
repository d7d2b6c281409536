"""Jobs whose spec is gone, while the engine stays: when they may be removed, and doing it.

A file that is missing for a moment is no removal: editors and version control take a file away
before they put the new one there.
"""

import threading
import time
from collections.abc import Callable
from pathlib import Path

from engine.lifecycle.record import Record
from engine.prune.delete import Deleter
from engine.prune.removed import JobRemover
from engine.prune.result import PruneEntry
from engine.reconcile.controller import JobController
from engine.refs import JobKey
from engine.runtime.workqueue import ItemRateLimiter, Workers, WorkQueue
from engine.telemetry.events import Notice, ObjectPruned

_TICK = 1.0
_STALL_TIMEOUT = 60.0
_GRACE_PERIOD = 2.0
_WORKERS, _MAX_REMOVAL = 4, 3600.0


class RemovedJobs:
    """Finds and removes jobs of a source that have a record and no spec any more.

    The controller's worker hands a job over by `claim`, and gets it back by the queue's `done`.
    Guarantees: nothing is removed while `set_blocked` has a reason; of one job there is one
    reconcile or one removal at a time. Every record is looked for again after `interval`; a removal
    that failed is tried again sooner, with back-off. A removal takes long, so it has workers of its
    own.
    """

    name = "removed jobs"
    grace = 0.0

    def __init__(
        self, controller: JobController, interval: float, logs_dir: Path | None = None
    ) -> None:
        self._controller = controller
        self._interval = interval
        self._logs_dir = logs_dir
        self._lock = threading.Lock()
        self._blocked_by = "the specs have not been read"
        self._reported = ""
        self._since: dict[JobKey, float] = {}
        """Since when the spec of each is missed."""
        self._announced: set[JobKey] = set()
        """Those of them that were reported."""
        self._rate_limiter = ItemRateLimiter()
        self._remover_since: tuple[float, JobRemover] | None = None
        self._queue: WorkQueue[JobKey] = WorkQueue()
        self._workers: Workers[JobKey] | None = None

    def run(self, stop: threading.Event, heartbeat: Callable[[float], None]) -> None:
        """Remove jobs until `stop` is set.

        A removal that is half-way is left to the next engine.
        """
        if self._workers is None:
            self._workers = Workers(
                self._queue,
                self._remove,
                _WORKERS,
                self._controller.supervisor,
                "remover",
                stall_timeout=_MAX_REMOVAL,
            )
            self._workers.start()
        while not stop.wait(_TICK):
            heartbeat(_STALL_TIMEOUT)
            for key in self._ready():
                self._controller.queue.add(key)
        self._queue.shut_down()

    def set_blocked(self, why: str) -> None:
        """Jobs may be removed from now on if `why` is empty."""
        self._blocked_by = why
        if not why:
            self._reported = ""

    def claim(self, key: JobKey) -> bool:
        """Whether the job is removed from now on instead of reconciled."""
        with self._lock:
            since = self._since.get(key)
        gone = since is not None and time.monotonic() - since >= _GRACE_PERIOD
        if not gone or self._blocked_by or self._controller.store.is_desired(key):
            return False
        with self._lock:
            is_news = key not in self._announced
            self._announced.add(key)
        if is_news:
            words = f"no spec in source {self._controller.source} any more; the job will be removed"
            self._controller.emit(Notice(words, key))
        self._queue.add(key)
        return True

    def _ready(self) -> list[JobKey]:
        """Jobs that may be removed now."""
        keys = [record.key for record in self._controller.informers.own_records()]
        gone = {key for key in keys if not self._controller.store.is_desired(key)}
        now = time.monotonic()
        with self._lock:
            self._since = {key: self._since.get(key, now) for key in gone}
            self._announced &= gone
            ready = [key for key, since in self._since.items() if now - since >= _GRACE_PERIOD]
        if ready and self._blocked_by:
            self._report_blocked(len(ready))
            return []
        return ready

    def _remove(self, key: JobKey) -> bool:
        """Remove everything of the job, its record last. Errors are reported as entries."""
        try:
            known = self._controller.informers.records(key.namespace).items(key)
            record = next((found for found in known if isinstance(found, Record)), None)
            self._postpone(key, self._interval)
            if record is None or self._controller.store.is_desired(key):
                return True
            if self._remover().remove(key):
                self._postpone(key, self._rate_limiter.when(key, longest=self._interval))
            else:
                self._rate_limiter.forget(key)
        finally:
            self._controller.queue.done(key)
        return True

    def _postpone(self, key: JobKey, seconds: float) -> None:
        with self._lock:
            self._since[key] = time.monotonic() + seconds - _GRACE_PERIOD

    def _remover(self) -> JobRemover:
        """A new one for each interval, with the whole limit of deletes again."""
        now = time.monotonic()
        with self._lock:
            if self._remover_since is None or now - self._remover_since[0] >= self._interval:
                limit = self._controller.config.limits.max_deletes_per_pass
                deleter = Deleter(self._controller.client, limit, logs_dir=self._logs_dir)
                remover = JobRemover(deleter, self._controller.source, self._report)
                self._remover_since = (now, remover)
            return self._remover_since[1]

    def _report(self, entry: PruneEntry) -> None:
        self._controller.emit(ObjectPruned(entry.ref, entry.action, entry.reason))

    def _report_blocked(self, count: int) -> None:
        if self._reported != self._blocked_by:
            self._reported = self._blocked_by
            jobs = f"{count} job{' has' if count == 1 else 's have'} no spec any more"
            self._controller.emit(Notice(f"{jobs}, but nothing is removed: {self._blocked_by}"))
