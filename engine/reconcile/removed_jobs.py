"""Jobs whose spec is gone, while the engine stays: when they may be removed, and doing it.

A file that is missing for a moment is no removal: editors and version control take a file away
before they put the new one there.
"""

import threading
import time
from collections.abc import Callable

from msgspec import Struct, field

from engine.lifecycle.record import Record
from engine.prune.delete import Deleter
from engine.prune.removed import JobRemover
from engine.prune.result import PruneAction
from engine.reconcile.controller import JobController
from engine.reconcile.spec_sync import SpecSync
from engine.refs import JobKey
from engine.runtime.retry import backoff
from engine.telemetry.events import Notice

_TICK = 1.0
_STALL_TIMEOUT = 60.0
_GRACE_PERIOD = 2.0
_FIRST_WAIT = 0.1


class RemovedJobs(Struct, eq=False):
    """Finds and removes jobs of a source that have a record and no spec any more.

    The controller's worker calls `remove` for a job before it would reconcile it, so that of one
    job there is one reconcile or one removal at a time. Guarantees: nothing is removed while the
    specs are incomplete, or while more jobs have no spec than may be removed at once. Every record
    is looked for again after `prune_interval`; what failed, or is yet to go, sooner, with back-off.
    """

    controller: JobController
    specs: SpecSync
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _refusal: str = ""
    """Why none of the jobs without a spec is removed; "" if they are."""
    _reported: str | bool = False
    _since: dict[JobKey, float] = {}
    """Since when the spec of each is missed."""
    _tries: dict[JobKey, int] = {}
    """How often in a row each of them was not gone afterwards."""
    _remover: JobRemover | None = None
    """With what is left of the deletes of this interval."""

    def run(self, stop: threading.Event, heartbeat: Callable[[float], None]) -> None:
        """Have jobs removed until `stop` is set."""
        due = 0.0
        while not stop.wait(_TICK):
            heartbeat(_STALL_TIMEOUT)
            is_due = time.monotonic() >= due
            if is_due:
                due = time.monotonic() + self.controller.options.prune_interval
                self._renew()
            for key in self._ready():
                if is_due or key not in self._tries:
                    self.controller.queue.add(key)

    def _renew(self) -> None:
        """With the whole limit of deletes again."""
        controller = self.controller
        for note in self._remover.deleter.notes if self._remover is not None else ():
            controller.emit(Notice(note))
        limit = controller.config.limits.max_deletes_per_pass
        deleter = Deleter(controller.client, limit, leads=lambda: controller.is_member)
        self._remover = JobRemover(deleter, controller.source, controller.report_pruned)

    def remove(self, key: JobKey) -> float | None:
        """Delete what may go of a job by now; in how many seconds the rest is looked at.

        None for a job that isn't to be removed. Errors: none; they are reported as entries.
        """
        controller, remover = self.controller, self._remover
        is_held = self.specs.incomplete or self._refusal or key in controller.store.desired
        if remover is None or is_held:
            return None
        with self._lock:
            since = self._since.get(key)
            if since is None or time.monotonic() - since < _GRACE_PERIOD:
                return None
            tries = self._tries[key] = self._tries.get(key, 0) + 1
        if tries == 1:
            words = f"no spec in source {controller.source} any more; the job will be removed"
            controller.emit(Notice(words, key))
        known = controller.informers.records(key.namespace).items(key)
        record = next((one for one in known if isinstance(one, Record)), None)
        action = remover.remove(record) if record is not None else PruneAction.KEPT
        if action in (None, PruneAction.FAILED):
            return backoff(tries, first=_FIRST_WAIT, longest=self.controller.options.prune_interval)
        with self._lock:
            self._tries[key] = 1
        return self.controller.options.prune_interval

    def _ready(self) -> list[JobKey]:
        """Jobs that may be removed now."""
        desired, now = self.controller.store.desired, time.monotonic()
        known = {record.key for record in self.controller.informers.own_records()}
        gone = known - desired.keys()
        refusal = self.controller.options.refuse_removals(gone, len(known))
        self._refusal = str(refusal or "")
        with self._lock:
            self._since = {key: self._since.get(key, now) for key in gone}
            self._tries = {key: self._tries[key] for key in gone & self._tries.keys()}
            ready = [key for key, since in self._since.items() if now - since >= _GRACE_PERIOD]
        incomplete = self.specs.incomplete
        why = incomplete or bool(self._refusal)
        if ready and why and self._reported != why:
            jobs = f"{len(ready)} job{' has' if len(ready) == 1 else 's have'} no spec any more"
            words = f"{jobs}, but nothing is removed: {incomplete}" if incomplete else self._refusal
            self.controller.emit(Notice(words))
        if ready or not why:
            self._reported = why
        return [] if why else ready
