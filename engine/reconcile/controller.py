"""The job controller: a queue of jobs, workers that reconcile them, and one failure policy.

`reconcile --once` gives it jobs once, and a condition to stop at; an engine that stays gives it
jobs whenever its specs change, and runs it under a manager.
"""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING

from engine.api.model import Config, Job
from engine.cluster.api import CONFIG_MAPS, PODS
from engine.cluster.client import Client
from engine.cluster.discovery import may_list
from engine.cluster.records import list_records
from engine.errors import EngineError, ForbiddenError, InvalidInputError
from engine.informers.factory import CacheSync, InformerFactory, stop_all
from engine.informers.reflector import Reflector, WatchContext, WatchErrorReporter
from engine.reconcile.completion import CompletionTracker, FailurePolicy, StopCondition
from engine.reconcile.executor import ActionExecutor
from engine.reconcile.job_store import Changes, JobStore, Rendered, TrackedJob
from engine.reconcile.preflight import resolve_and_render
from engine.reconcile.reconciler import Reconciler, Result
from engine.reconcile.reporter import AttemptReporter
from engine.refs import JobKey
from engine.render.attempt import RenderConfig
from engine.render.templates import Templates
from engine.runtime.retry import retry_transient
from engine.runtime.supervisor import Supervisor
from engine.runtime.workqueue import Workers, WorkQueue
from engine.telemetry.events import Emit, JobUnchanged, JobUnmanaged, Ready, SpecProblem
from engine.telemetry.redact import Redactor
from engine.wellknown import SOURCE

if TYPE_CHECKING:
    from engine.reconcile.image_locator import ImageLocator
    from engine.reconcile.quota_queue import QuotaQueue
    from engine.reconcile.start_limiter import StartLimiter
    from engine.runtime.leader_election import LeaderElector

_TICK, _SYNC_TICK = 1.0, 0.02
_STALL_TIMEOUT = 60.0
_RESYNC_PERIOD = 600.0
_SHUTDOWN_TIMEOUT = 5.0
_NOT_LEADING = 1.0


@dataclass(frozen=True, slots=True)
class ControllerDependencies:
    """What a controller gets from outside: the process's environment, and who listens."""

    environment: Mapping[str, str]
    redactor: Redactor
    emit: Emit
    on_reconcile: Callable[[float, str], None] = lambda _seconds, _error: None
    """Gets the seconds of each reconcile and the class of its error."""
    on_queue_latency: Callable[[float], None] = lambda _seconds: None
    """Gets for how many seconds a job was ready before a worker took it."""


class JobController:
    """Reconciles the jobs of one source. Safe to use from several threads.

    It owns the queue and hands each key to the reconciler, if that may be: not before the namespace
    has been read (`CacheSync`), nor while this engine doesn't lead, nor more new runs at once than
    are allowed (`StartLimiter`). What comes of it goes to the quota's queue, to `FailurePolicy`,
    or, with `until`, to `CompletionTracker`.

    Guarantees: a job's reconcile never runs twice at once. A job whose spec is gone isn't started
    any more, but what runs of it goes on to its outcome.
    """

    name = "job controller"
    grace = _SHUTDOWN_TIMEOUT + 1.5

    def __init__(
        self,
        client: Client,
        source: str,
        concurrency: int,
        dependencies: ControllerDependencies,
        until: StopCondition | None = None,
        max_starts: int | None = None,
    ) -> None:
        self.client = client
        self.source = source
        self.emit = dependencies.emit
        self.store = JobStore()
        self.queue: WorkQueue[JobKey] = WorkQueue(dependencies.on_queue_latency)
        self.supervisor = Supervisor(self.emit)
        self.failures = FailurePolicy(self.emit, self.supervisor, until)
        self.on_watch_error = WatchErrorReporter(self.emit)
        self._context = WatchContext(client, self.supervisor, self._on_change, self.on_watch_error)
        self.informers = InformerFactory(self._context, source)
        self.caches = CacheSync(self.informers)
        self._max_starts = max_starts
        self._quota_queue: QuotaQueue | None = None
        """Imported, and made, once a quota has no room for a job."""
        self._quota_lock = threading.Lock()
        self._image_locator: ImageLocator | None = None
        self.config: Config
        """What `configure` was given last."""
        self.elector: LeaderElector | None = None
        """Who says whether this engine may act; None where it may."""
        self.claim: Callable[[JobKey], bool] = lambda _key: False
        """Takes over a job that is to be removed; the queue's `done` gives it back."""
        self.completion = CompletionTracker()
        """Jobs that need no more, as `until` says."""
        self._dependencies = dependencies
        self._until = until
        self._render_config: RenderConfig
        self._reconciler: Reconciler
        self._concurrency = concurrency
        self._blocked: set[JobKey] = set()
        """Jobs with problems in secrets or templates: another file may help."""
        self._resync_at = time.monotonic() + _RESYNC_PERIOD
        self._workers: Workers[JobKey] | None = None

    def configure(self, config: Config, templates: Templates) -> RenderConfig:
        """Put `config` in force; what was prepared under another one is prepared anew."""
        self.config = config
        if self._until is None:
            self.start_limiter.configure(config.limits)
        self._render_config = RenderConfig(templates, self.source, config.limits)
        executor = ActionExecutor(
            self.client,
            self.informers,
            self._render_config,
            self._hosts_with,
            AttemptReporter(self.client, self.emit, on_pods=config.features.events),
            self._dependencies.redactor,
        )
        self._reconciler = Reconciler(executor, config.pull, config.records.history)
        return self._render_config

    @cached_property
    def start_limiter(self) -> "StartLimiter":
        """Of an engine that stays; `--once` counts its new runs before it starts any."""
        from engine.reconcile.start_limiter import StartLimiter  # noqa: PLC0415

        return StartLimiter(self.store, self.informers, self._max_starts)

    def _hosts_with(self, image: str) -> tuple[str, ...]:
        if self._image_locator is None:
            from engine.reconcile.image_locator import ImageLocator  # noqa: PLC0415 - rarely needed

            self._image_locator = ImageLocator(self.client, self.emit)
        return self._image_locator.hosts_with(image)

    @property
    def quota_waiting(self) -> int:
        """How many jobs wait for room in a quota."""
        return len(self._quota_queue) if self._quota_queue is not None else 0

    def start(self, concurrency: int) -> None:
        """Begin to reconcile what is in the queue."""
        self._workers = Workers(self.queue, self._handle, concurrency, self.supervisor)
        self._workers.start()

    def stop(self, seconds: float) -> None:
        """Begin nothing new; bring to its next safe point what is half-way."""
        if self._workers is not None:
            self._workers.stop(seconds)
        stop_all(self.reflectors())

    def run(self, stop: threading.Event, heartbeat: Callable[[float], None]) -> None:
        """Reconcile, and see to what comes with time, until `stop` is set."""
        if self._workers is None:
            self.start(self._concurrency)
        while not stop.wait(_SYNC_TICK if self.caches.waits and not self.failing else _TICK):
            heartbeat(_STALL_TIMEOUT)
            self._tick()
        self.stop(_SHUTDOWN_TIMEOUT)

    def sync(self, jobs: Mapping[JobKey, Job]) -> Changes:
        """Make `jobs` the desired ones: what has changed is reconciled, and nothing else.

        A job whose namespace has not been read yet is queued once it has been. To be called from
        one thread.
        """
        changes = self.start_limiter.sync(jobs)
        for key in (*changes.added, *changes.changed):
            self.caches.watch(key.namespace)
        # Namespaces that no spec names any more.
        named = {key.namespace for key in self.store.desired}
        self.caches.drop({key.namespace for key in changes.removed} - named)
        changed = (*changes.added, *changes.changed, *changes.removed)
        for key in dict.fromkeys((*changed, *tuple(self._blocked))):
            self.failures.forget(key)
            self.queue.add(key)
        self._release_starts()
        self.caches.has_specs = True
        return changes

    def watch_namespaces_with_records(self, home: str) -> None:
        """Watch where the source has records, and perhaps no spec any more.

        Without the right to look everywhere, that is `home`, if it may be read.
        Errors: those of a list that fails for long.
        """
        if not may_list(self.client, CONFIG_MAPS):
            if all(may_list(self.client, kind, home) for kind in (CONFIG_MAPS, PODS)):
                self.caches.watch(home)
            return
        selector = f"{SOURCE}={self.source}"
        try:
            records = retry_transient(
                lambda: list_records(self.client, "", selector), self.on_watch_error
            )
        except ForbiddenError:
            return
        for key in records.items:
            self.caches.watch(key.namespace)

    def complete(self, key: JobKey, error: EngineError | None = None) -> None:
        """The job needs no more; `error` is why it was given up."""
        self._dequeue(key)
        self.completion.add(key, error)

    def forget(self, key: JobKey) -> None:
        """Nothing is left to be done for a job without a spec; one that has a spec is kept."""
        self._dequeue(key)
        self.failures.forget(key)
        self._blocked.discard(key)
        if self.store.forget(key):
            self.emit(JobUnmanaged(key))

    def on_leadership(self, leads: bool) -> None:
        """Hand out jobs as long as this engine leads."""
        if leads:
            self.queue.resume()
        else:
            self.queue.pause()

    def reflectors(self) -> list[Reflector]:
        """Every watch there is."""
        quotas = self._quota_queue.reflectors() if self._quota_queue is not None else ()
        return [*self.informers.reflectors(), *quotas]

    @property
    def failing(self) -> list[str]:
        """A line for each watch that hears nothing at the moment."""
        return [f"{r.path}: {r.failing}" for r in self.reflectors() if r.failing]

    @property
    def unheard(self) -> tuple[str, str]:
        """The first line of `failing` that stops the engine, and the first that stops few; or "".

        That a namespace may not be read is no matter of the jobs in others.
        """
        if all(r.failing and r.refused for r in self.informers.reflectors()):
            return next(iter(self.failing), ""), ""
        failing = [(r.refused, f"{r.path}: {r.failing}") for r in self.reflectors() if r.failing]
        lost = (line for refused, line in failing if not refused)
        return next(lost, ""), next((line for refused, line in failing if refused), "")

    @property
    def unrecorded(self) -> str:
        """Which jobs wait because their records are refused; "" if none does."""
        waiting = sorted(self.store.refused_records().items())
        if not waiting:
            return ""
        key, words = waiting[0]
        more = f" and for {len(waiting) - 1} more" if len(waiting) > 1 else ""
        return f"refused for {key}{more}: {words}"

    def _on_change(self, key: JobKey) -> None:
        if key in self.store:
            self.queue.add(key)

    def _handle(self, key: JobKey) -> bool:
        """Reconcile one job; whether the key is done."""
        if self.claim(key):
            self.forget(key)
            return False
        if self.elector is not None and not self.elector.is_leader:
            self.queue.add_after(key, _NOT_LEADING)
            return True
        tracked = self.store.checkout(key)
        if tracked is None or key in self.completion:
            return True
        began, kind = time.monotonic(), ""
        try:
            requeue_after = self._reconcile(tracked)
        except Exception as error:  # noqa: BLE001 - one job's defect must not stop the others
            requeue_after, kind = self._on_failure(tracked, error), type(error).__name__
        self._dependencies.on_reconcile(time.monotonic() - began, kind)
        if requeue_after is None:
            self.queue.forget_delayed(key)
        else:
            self.queue.add_after(key, requeue_after)
        if self._until is not None and key not in self.completion:
            self.informers.pods(key.namespace).start()
        return True

    def _reconcile(self, tracked: TrackedJob) -> float | None:
        """Seconds until the job is to be reconciled without an event; None for not before one."""
        key = tracked.job.key
        desired = self.store.is_desired(key)
        if not self.informers.has_synced(key.namespace):
            if not desired:
                self.forget(key)
            return None
        if self._until is None:
            tracked.record = self.informers.records(key.namespace).newest(key, tracked.record)
        if not desired and not self._has_started(tracked):
            self._reconciler.reporter.report_end(tracked)
            self.forget(key)
            return None
        if self._until is None and key in self.start_limiter:
            return None
        self._prepare(tracked)
        rejection = tracked.observed.rejection
        queue = self._quota_queue
        if rejection is not None and queue is not None and queue.take_turn(key):
            tracked.observed.rejection = replace(rejection, retry_at=self.client.now())
        result = self._reconciler.reconcile(tracked)
        record = tracked.unrecorded or tracked.record
        if tracked.observed.rejection is None or result.finished:
            self._dequeue(key)
        elif record is not None:
            self._enqueue(key, record.queued_at or self.client.now())
        return self._on_success(tracked, result)

    def _enqueue(self, key: JobKey, since: datetime) -> None:
        from engine.reconcile.quota_queue import QuotaQueue  # noqa: PLC0415 - rarely needed

        with self._quota_lock:
            if self._quota_queue is None:
                self._quota_queue = QuotaQueue(self._context, self.queue.add_after)
        self._quota_queue.enqueue(key, since)

    def _dequeue(self, key: JobKey) -> None:
        if self._quota_queue is not None:
            self._quota_queue.dequeue(key)

    def _prepare(self, tracked: TrackedJob) -> None:
        """Errors: InvalidInputError with what keeps the next attempt from starting."""
        config = self._render_config
        if tracked.rendered.config is not None and tracked.rendered.config is not config:
            tracked.rendered = Rendered()
        if tracked.rendered.config is config or tracked.is_finished(self.source):
            return
        key = tracked.job.key
        problems = resolve_and_render(
            tracked,
            config,
            self._dependencies.environment,
            self._dependencies.redactor,
            to_start=not tracked.is_started(self.informers.pods(key.namespace).items(key)),
        )
        if problems:
            raise InvalidInputError(problems)
        self._blocked.discard(key)

    def _has_started(self, tracked: TrackedJob) -> bool:
        """Whether there is anything to see through to its end.

        Where a watch may not tell in time of a pod whose create was never answered, the API is
        asked. Errors: those of the list.
        """
        record, key = tracked.record, tracked.job.key
        if record is not None and record.state.is_final:
            return False
        attempt = record.open_attempt if record else None
        informer = self.informers.pods(key.namespace)
        if tracked.observed.create_unanswered:
            informer.refresh(key)
            tracked.observed.create_unanswered = False
        return attempt is not None or tracked.has_begun(informer.items(key))

    def _on_success(self, tracked: TrackedJob, result: Result) -> float | None:
        self.failures.succeeded(tracked)
        if result.finished:
            self._on_finished(tracked)
            return None
        if self._until is not None and self.completion.is_satisfied(tracked, result, self._until):
            self.complete(tracked.job.key)
            return None
        if result.requeue_at is None:
            return None
        return max(0.0, (result.requeue_at - self.client.now()).total_seconds())

    def _on_finished(self, tracked: TrackedJob) -> None:
        key, reported = tracked.job.key, tracked.reported
        was_reported = tracked.writes or reported.unchanged or reported.state
        if not was_reported and tracked.record is not None:
            self.emit(JobUnchanged(key, tracked.record.state))
        reported.unchanged = True
        tracked.release()
        if self._until is not None:
            self.complete(key)
        elif not self.store.is_desired(key):
            self.forget(key)

    def _on_failure(self, tracked: TrackedJob, error: Exception) -> float | None:
        key = tracked.job.key
        verdict = self.failures.judge(tracked, error)
        if isinstance(verdict, EngineError):
            self.complete(key, verdict)
            return None
        if isinstance(error, InvalidInputError):
            self._blocked.add(key)
            tracked.rendered = Rendered()
        return verdict

    def _release_starts(self) -> None:
        """Let jobs begin, unless there are more new runs among them than may."""
        released, errors = self.start_limiter.release()
        for key in released:
            self.queue.add(key)
        for error in errors:
            self.emit(SpecProblem(str(error)))

    def _tick(self) -> None:
        """What is to be seen to from time to time."""
        synced = self.caches.newly_synced()
        for key in self.store.known if synced else ():
            if key.namespace in synced:
                self.queue.add(key)
        self._release_starts()
        if self.caches.becomes_ready():
            self.emit(Ready())
        if not self.failing:
            self.on_watch_error.recovered()
        if time.monotonic() > self._resync_at:
            self._resync_at = time.monotonic() + _RESYNC_PERIOD
            for key in self.store.known:
                self.queue.add(key)
