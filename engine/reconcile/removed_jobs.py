"""Jobs whose spec is gone, while the engine stays: when they may be removed, and doing it.

A file that is missing for a moment is no removal: editors and version control take a file away
before they put the new one there.
"""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from engine.lifecycle.max_removals import MaxRemovals
from engine.lifecycle.record import Record
from engine.prune.delete import Deleter
from engine.prune.removed import JobRemover
from engine.reconcile.controller import JobController
from engine.reconcile.spec_sync import SpecSync
from engine.refs import JobKey
from engine.runtime.retry import backoff
from engine.telemetry.events import Notice

_TICK = 1.0
_STALL_TIMEOUT = 60.0
_GRACE_PERIOD = 2.0
_WORKERS, _FIRST_WAIT = 4, 0.1


class RemovedJobs:
    """Finds and removes jobs of a source that have a record and no spec any more.

    The controller's worker hands a job over by `claim`, and gets it back by the queue's `done`.
    Guarantees: nothing is removed while the specs are incomplete, or while more jobs have no spec
    than may be removed at once; of one job there is one
    reconcile or one removal at a time. Every record is looked for again after `interval`; a removal
    that failed is tried again sooner, with back-off. A removal takes long, so it has workers of its
    own.
    """

    def __init__(
        self,
        controller: JobController,
        specs: SpecSync,
        interval: float,
        limit: MaxRemovals,
    ) -> None:
        self._controller = controller
        self._specs = specs
        self._interval = interval
        self._limit = limit
        self._lock = threading.Lock()
        self._stops = False
        self._refusal = ""
        """Why none of the jobs without a spec is removed; "" if they are."""
        self._reported: str | bool = False
        self._since: dict[JobKey, float] = {}
        """Since when the spec of each is missed."""
        self._failures: dict[JobKey, int] = {}
        """How often in a row the removal failed of each of them that was reported."""
        self._deleter: Deleter | None = None
        self._remover: JobRemover
        self._pool = ThreadPoolExecutor(_WORKERS, "remover")

    def run(self, stop: threading.Event, heartbeat: Callable[[float], None]) -> None:
        """Remove jobs until `stop` is set.

        A removal that is half-way is left to the next engine.
        """
        controller, due = self._controller, 0.0
        while not stop.wait(_TICK):
            heartbeat(_STALL_TIMEOUT)
            if time.monotonic() >= due:
                # With the whole limit of deletes again.
                due = time.monotonic() + self._interval
                limit = controller.config.limits.max_deletes_per_pass
                self._report_foreign()
                self._deleter = Deleter(
                    controller.client, limit, leads=lambda: controller.is_member
                )
                report = controller.report_pruned
                self._remover = JobRemover(self._deleter, controller.source, report)
            for key in self._ready():
                controller.queue.add(key)
        with self._lock:
            self._stops = True
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _report_foreign(self) -> None:
        for note in self._deleter.notes if self._deleter is not None else ():
            self._controller.emit(Notice(note))

    def claim(self, key: JobKey) -> bool:
        """Whether the job is removed from now on instead of reconciled."""
        if self._specs.incomplete or self._refusal or key in self._controller.store.desired:
            return False
        with self._lock:
            since = self._since.get(key)
            if self._stops or since is None or time.monotonic() - since < _GRACE_PERIOD:
                return False
            if key not in self._failures:
                self._failures[key] = 0
                source = self._controller.source
                words = f"no spec in source {source} any more; the job will be removed"
                self._controller.emit(Notice(words, key))
            self._pool.submit(self._remove, key)
        return True

    def _ready(self) -> list[JobKey]:
        """Jobs that may be removed now."""
        desired, now = self._controller.store.desired, time.monotonic()
        known = {record.key for record in self._controller.informers.own_records()}
        gone = known - desired.keys()
        refusal = self._limit.refusal(self._controller.source, gone, len(known))
        self._refusal = str(refusal or "")
        with self._lock:
            self._since = {key: self._since.get(key, now) for key in gone}
            self._failures = {key: self._failures[key] for key in gone & self._failures.keys()}
            ready = [key for key, since in self._since.items() if now - since >= _GRACE_PERIOD]
        incomplete = self._specs.incomplete
        why = incomplete or bool(self._refusal)
        if ready and why and self._reported != why:
            jobs = f"{len(ready)} job{' has' if len(ready) == 1 else 's have'} no spec any more"
            words = f"{jobs}, but nothing is removed: {incomplete}" if incomplete else self._refusal
            self._controller.emit(Notice(words))
        if ready or not why:
            self._reported = why
        return [] if why else ready

    def _remove(self, key: JobKey) -> None:
        """Remove everything of the job, its record last. Errors are reported as entries."""
        controller = self._controller
        try:
            known = controller.informers.records(key.namespace).items(key)
            record = next((one for one in known if isinstance(one, Record)), None)
            self._postpone(key, self._interval)
            if key in controller.store.desired or record is None:
                return
            failed = self._remover.remove(record)
            with self._lock:
                failures = self._failures[key] = self._failures.get(key, 0) + 1 if failed else 0
            if failed:
                self._postpone(key, backoff(failures, first=_FIRST_WAIT, longest=self._interval))
        except Exception as error:  # noqa: BLE001 - panics end here
            controller.supervisor.report("removed jobs", error, key)
        finally:
            controller.queue.done(key)

    def _postpone(self, key: JobKey, seconds: float) -> None:
        with self._lock:
            self._since[key] = time.monotonic() + seconds - _GRACE_PERIOD
