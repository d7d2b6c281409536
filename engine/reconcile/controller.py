"""The job controller: a queue of jobs, workers that reconcile them, and one failure policy.

`reconcile --once` gives it jobs once, and a condition to stop at; an engine that stays gives it
jobs whenever its specs change, and runs it under a manager.
"""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from engine.api.model import Config, Job
from engine.cluster.access import may_list
from engine.cluster.api import CONFIG_MAPS, PODS
from engine.cluster.client import Client
from engine.cluster.records import list_records
from engine.errors import EngineError, ForbiddenError, InvalidInputError
from engine.informers.factory import InformerFactory, stop_all
from engine.informers.reflector import Reflector, WatchContext
from engine.reconcile.cache_sync import CacheSync
from engine.reconcile.completion import Completion, Until
from engine.reconcile.executor import ActionExecutor
from engine.reconcile.failure_policy import FailurePolicy, GiveUp
from engine.reconcile.image_locator import ImageLocator
from engine.reconcile.job_state import JobState, Rendered
from engine.reconcile.job_store import Changes, JobStore
from engine.reconcile.preflight import resolve_and_render
from engine.reconcile.quota_queue import QuotaQueue
from engine.reconcile.reconciler import Reconciler, Result
from engine.reconcile.rendering import RenderConfig
from engine.reconcile.reporter import AttemptReporter
from engine.reconcile.start_brake import StartBrake
from engine.reconcile.watch_errors import WatchErrorReporter
from engine.refs import JobKey
from engine.render.templates import Templates
from engine.runtime.retry import retry_transient
from engine.runtime.supervisor import Supervisor
from engine.runtime.workers import Workers
from engine.runtime.workqueue import WorkQueue
from engine.telemetry.events import Emit, JobUnchanged, JobUnmanaged, Ready, SpecProblem
from engine.telemetry.redact import Redactor
from engine.wellknown import SOURCE

if TYPE_CHECKING:
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


class Takeover(Protocol):
    """Who may take a job out of the controller's hands."""

    def take_over(self, key: JobKey) -> bool:
        """Whether `key` is worked on elsewhere from now on; then `JobController.give_back` ends it.

        Guarantees: quick.
        """


class JobController:
    """Reconciles the jobs of one source. Safe to use from several threads.

    It owns the queue and hands each key to the reconciler, if that may be: not before the namespace
    has been read (`CacheSync`), nor while this engine doesn't lead, nor more new runs at once than
    are allowed (`StartBrake`). What comes of it goes to the quota's queue, to `FailurePolicy`, or,
    with `until`, to `Completion`.

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
        until: Until | None = None,
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
        context = WatchContext(client, self.supervisor, self._on_change, self.on_watch_error)
        self.informers = InformerFactory(context, source)
        self.caches = CacheSync(self.informers)
        self.brake = StartBrake(self.store, self.informers, max_starts)
        self.quota_queue = QuotaQueue(context, self.queue.add_after)
        self._image_locator = ImageLocator(client, self.emit)
        self.config: Config
        """What `configure` was given last."""
        self.elector: LeaderElector | None = None
        """Who says whether this engine may act; None where it may."""
        self.takeover: Takeover | None = None
        self.completion = Completion()
        """Jobs that need no more, as `until` says."""
        self._dependencies = dependencies
        self._until = until
        self._render_config: RenderConfig
        self._reconciler: Reconciler
        self._reporter: AttemptReporter
        self._concurrency = concurrency
        self._blocked: set[JobKey] = set()
        """Jobs whose secrets or templates stand in the way: another file may help."""
        self._resync_at = time.monotonic() + _RESYNC_PERIOD
        self._workers: Workers[JobKey] | None = None

    def configure(self, config: Config, templates: Templates) -> RenderConfig:
        """Put `config` in force; what was prepared under another one is prepared anew."""
        self.config = config
        self.brake.configure(config.limits)
        self._render_config = RenderConfig(templates, self.source, config.limits)
        reporter = AttemptReporter(self.client, self.emit, on_pods=config.features.events)
        self._reporter = reporter
        executor = ActionExecutor(
            self.client,
            self.informers,
            self._render_config,
            self._image_locator,
            reporter,
            self._dependencies.redactor,
        )
        self._reconciler = Reconciler(executor, config.pull, config.records.history)
        return self._render_config

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
        while not stop.wait(self._until_tick()):
            heartbeat(_STALL_TIMEOUT)
            self._tick()
        self.stop(_SHUTDOWN_TIMEOUT)

    def sync(self, jobs: Mapping[JobKey, Job]) -> Changes:
        """Make `jobs` the desired ones: what has changed is reconciled, and nothing else.

        A job whose namespace has not been read yet is queued once it has been. To be called from
        one thread.
        """
        changes = self.brake.sync(jobs)
        for key in (*changes.added, *changes.changed):
            self.caches.watch(key.namespace)
        self.caches.drop(self._abandoned(changes))
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
        self.quota_queue.dequeue(key)
        self.completion.add(key, error)

    def give_back(self, key: JobKey) -> None:
        """A takeover of this job is over."""
        self.queue.done(key)

    def forget(self, key: JobKey) -> None:
        """Nothing is left to be done for a job without a spec; one that has a spec is kept."""
        self.quota_queue.dequeue(key)
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
        return [*self.informers.reflectors(), *self.quota_queue.reflectors()]

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
        if self.takeover is not None and self.takeover.take_over(key):
            return False
        if self.elector is not None and not self.elector.is_leader:
            self.queue.add_after(key, _NOT_LEADING)
            return True
        state = self.store.checkout(key)
        if state is None or key in self.completion:
            return True
        began, kind = time.monotonic(), ""
        try:
            requeue_after = self._reconcile(state)
        except Exception as error:  # noqa: BLE001 - one job's defect must not stop the others
            requeue_after, kind = self._on_failure(state, error), type(error).__name__
        self._dependencies.on_reconcile(time.monotonic() - began, kind)
        if requeue_after is None:
            self.queue.forget_delayed(key)
        else:
            self.queue.add_after(key, requeue_after)
        if self._until is not None and key not in self.completion:
            self.informers.pods(key.namespace).start()
        return True

    def _reconcile(self, state: JobState) -> float | None:
        """Seconds until the job is to be reconciled without an event; None for not before one."""
        key = state.job.key
        desired = self.store.is_desired(key)
        if not self.informers.has_synced(key.namespace):
            if not desired:
                self.forget(key)
            return None
        if self._until is None:
            state.record = self.informers.records(key.namespace).newest(key, state.record)
        if not desired and not self._has_started(state):
            self._reporter.report_end(state)
            self.forget(key)
            return None
        if key in self.brake:
            return None
        self._prepare(state)
        rejection = state.observed.rejection
        if rejection is not None and self.quota_queue.take_turn(key):
            state.observed.rejection = replace(rejection, retry_at=self.client.now())
        result = self._reconciler.reconcile(state)
        record = state.unrecorded or state.record
        if state.observed.rejection is None or result.finished:
            self.quota_queue.dequeue(key)
        elif record is not None:
            self.quota_queue.enqueue(key, record.queued_at or self.client.now())
        return self._on_success(state, result)

    def _prepare(self, state: JobState) -> None:
        """Errors: InvalidInputError with what stands in the way of the next attempt."""
        config = self._render_config
        if state.rendered.config is not None and state.rendered.config is not config:
            state.rendered = Rendered()
        if state.rendered.config is config or state.is_finished(self.source):
            return
        key = state.job.key
        problems = resolve_and_render(
            state,
            config,
            self._dependencies.environment,
            self._dependencies.redactor,
            to_start=not state.is_started(self.informers.pods(key.namespace).items(key)),
        )
        if problems:
            raise InvalidInputError(problems)
        self._blocked.discard(key)

    def _has_started(self, state: JobState) -> bool:
        """Whether there is anything to see through to its end.

        Where a watch may not tell in time of a pod whose create was never answered, the API is
        asked. Errors: those of the list.
        """
        record, key = state.record, state.job.key
        if record is not None and record.state.is_final:
            return False
        attempt = record.open_attempt if record else None
        informer = self.informers.pods(key.namespace)
        if state.observed.create_unanswered:
            informer.refresh(key)
            state.observed.create_unanswered = False
        return attempt is not None or state.has_begun(informer.items(key))

    def _on_success(self, state: JobState, result: Result) -> float | None:
        self.failures.succeeded(state)
        if result.finished:
            self._on_finished(state)
            return None
        if self._until is not None and self.completion.is_enough(state, result, self._until):
            self.complete(state.job.key)
            return None
        if result.requeue_at is None:
            return None
        return max(0.0, (result.requeue_at - self.client.now()).total_seconds())

    def _on_finished(self, state: JobState) -> None:
        key, reported = state.job.key, state.reported
        told = state.writes or reported.unchanged or reported.state
        if not told and state.record is not None:
            self.emit(JobUnchanged(key, state.record.state))
        reported.unchanged = True
        state.release()
        if self._until is not None:
            self.complete(key)
        elif not self.store.is_desired(key):
            self.forget(key)

    def _on_failure(self, state: JobState, error: Exception) -> float | None:
        key = state.job.key
        verdict = self.failures.judge(state, error)
        if isinstance(verdict, GiveUp):
            self.complete(key, verdict.error)
            return None
        if isinstance(error, InvalidInputError):
            self._blocked.add(key)
            state.rendered = Rendered()
        return verdict

    def _release_starts(self) -> None:
        """Let jobs begin, unless there are more new runs among them than may."""
        released, refusal = self.brake.judge()
        for key in released:
            self.queue.add(key)
        if refusal is not None:
            self.emit(SpecProblem(str(refusal)))

    def _until_tick(self) -> float:
        return _SYNC_TICK if self.caches.waits and not self.failing else _TICK

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

    def _abandoned(self, changes: Changes) -> set[str]:
        """Namespaces that no spec names any more."""
        return {key.namespace for key in changes.removed} - {
            k.namespace for k in self.store.desired
        }
