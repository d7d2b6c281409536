"""The job controller: a queue of jobs, workers that reconcile them, and one failure policy.

`reconcile --once` gives it jobs once, and a condition to stop at; an engine that stays gives it
jobs whenever its specs change, and runs it under a manager.
"""

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Protocol

from engine.api.model import Config, Job
from engine.cluster.client import Client
from engine.cluster.records import list_records
from engine.decide.record import Record
from engine.errors import BrokenRecordError, EngineError, ForbiddenError, InvalidInputError
from engine.informers.factory import InformerFactory, stop_all
from engine.informers.reflector import Reflector, WatchContext
from engine.reconcile.executor import ActionExecutor
from engine.reconcile.image_locator import ImageLocator
from engine.reconcile.job_state import JobState, Rendered
from engine.reconcile.job_store import Changes, JobStore
from engine.reconcile.preflight import resolve_and_render
from engine.reconcile.quota_queue import QuotaQueue
from engine.reconcile.reconciler import Reconciler, Result
from engine.reconcile.rendering import RenderConfig
from engine.reconcile.reporter import AttemptReporter
from engine.reconcile.start_brake import NewRun, StartBrake, StartLimit, new_run, start_limit
from engine.reconcile.watch_errors import WatchErrorReporter
from engine.refs import JobKey
from engine.render.templates import Templates
from engine.runtime.leader_election import LeaderElector
from engine.runtime.rate_limiter import ItemRateLimiter
from engine.runtime.retry import retry_transient
from engine.runtime.supervisor import Supervisor
from engine.runtime.workers import Workers
from engine.runtime.workqueue import WorkQueue
from engine.telemetry.events import (
    Emit,
    ErrorReported,
    JobUnchanged,
    JobUnmanaged,
    Ready,
    SpecProblem,
)
from engine.telemetry.redact import Redactor
from engine.wellknown import SOURCE

_TICK, _SYNC_TICK = 1.0, 0.02
_STALL_TIMEOUT = 60.0
_RESYNC_PERIOD = 600.0
_SHUTDOWN_TIMEOUT = 5.0
_REPORT_AFTER = 3
_MAX_BACKOFF, _MAX_BACKOFF_PERMANENT = 15.0, 300.0
_NOT_LEADING = 1.0
_DEFECT = "this is a defect: report it with -vv"


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


@dataclass(frozen=True, slots=True)
class Until:
    """When a job needs no more of an engine that doesn't stay. Times are seconds."""

    started: bool
    """Whether it is enough that its attempt was started."""
    queue_timeout: float
    """How long a quota or a webhook may refuse it."""
    retry_timeout: float = 300.0
    """How long the cluster may fail; what trying again can't mend isn't tried again at all."""


class Takeover(Protocol):
    """Who may take a job out of the controller's hands."""

    def take_over(self, key: JobKey) -> bool:
        """Whether `key` is worked on elsewhere from now on; then `JobController.give_back` ends it.

        Guarantees: quick.
        """


class JobController:
    """Reconciles the jobs of one source. Safe to use from several threads.

    Guarantees: a job's reconcile never runs twice at once. A job whose spec is gone isn't started
    any more, but what runs of it goes on to its outcome.

    The failure policy, for both ways of running: what a reconcile raises is its job's alone. It is
    tried again with back-off, up to 15 s where that may mend it and up to 5 minutes where it can't.
    It is reported at the third failure in a row, and at once where trying again can't mend it; once
    for as long as it stays the same. With `until` the job is given up at once where trying again
    can't mend it, else after `retry_timeout`; without it, never.
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
        self.rate_limiter = ItemRateLimiter()
        self.supervisor = Supervisor(self.emit)
        self.on_watch_error = WatchErrorReporter(self.emit)
        context = WatchContext(client, self.supervisor, self._on_change, self.on_watch_error)
        self.informers = InformerFactory(context, source)
        self.quota_queue = QuotaQueue(context, self.queue.add_after)
        self._image_locator = ImageLocator(client, self.emit)
        self.config: Config
        """What `configure` was given last."""
        self.elector: LeaderElector | None = None
        """Who says whether this engine may act; None where it may."""
        self.takeover: Takeover | None = None
        self.completed: dict[JobKey, EngineError | None] = {}
        """Jobs that need no more, as `until` says, and why they were given up."""
        self._dependencies = dependencies
        self._until = until
        self._max_starts = max_starts
        self._brake = StartBrake()
        self._render_config: RenderConfig
        self._reconciler: Reconciler
        self._concurrency = concurrency
        self._completion = threading.Condition()
        self._failing_since: dict[JobKey, float] = {}
        self._queued_since: dict[JobKey, float] = {}
        self._blocked: set[JobKey] = set()
        """Jobs whose secrets or templates stand in the way: another file may help."""
        self._unrecorded: dict[JobKey, str] = {}
        """Jobs whose record the server refuses, and its words."""
        self._unsynced: set[str] = set()
        """Namespaces that are watched and have not been read yet."""
        self._has_specs = self._is_ready = False
        self._resync_at = time.monotonic() + _RESYNC_PERIOD
        self._workers: Workers[JobKey] | None = None

    def configure(self, config: Config, templates: Templates) -> RenderConfig:
        """Put `config` in force; what was prepared under another one is prepared anew."""
        self.config = config
        self._render_config = RenderConfig(templates, self.source, config.limits)
        reporter = AttemptReporter(self.client, self.emit, on_pods=config.features.events)
        redactor = self._dependencies.redactor
        self._reconciler = Reconciler(
            self.client,
            self.informers,
            ActionExecutor(
                self.client,
                self.informers,
                self._render_config,
                self._image_locator,
                reporter,
                redactor,
            ),
            reporter,
            source=self.source,
            pull=config.pull,
            kept_runs=config.records.history,
        )
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
        changes = self.store.update(jobs)
        for key in (*changes.added, *changes.changed):
            self.watch(key.namespace)
        self._drop_namespaces(changes)
        self._brake.discard(changes.removed)
        if self._start_limit.most is not None:
            self._brake.add((*changes.added, *changes.changed))
        changed = (*changes.added, *changes.changed, *changes.removed)
        for key in dict.fromkeys((*changed, *tuple(self._blocked))):
            self.rate_limiter.forget(key)
            self.queue.add(key)
        self._release_starts()
        self._has_specs = True
        return changes

    def watch(self, namespace: str) -> None:
        """List and watch pods and records of a namespace, if that isn't done yet."""
        self.informers.start(namespace)
        if not self.informers.has_synced(namespace):
            self._unsynced.add(namespace)

    def watch_namespaces_with_records(self) -> None:
        """Watch where the source has records, and perhaps no spec any more.

        Errors: those of a list that fails for long; without the right to it, nothing happens.
        """
        selector = f"{SOURCE}={self.source}"
        try:
            records = retry_transient(
                lambda: list_records(self.client, "", selector), self.on_watch_error
            )
        except ForbiddenError:
            return
        for key in records.items:
            self.watch(key.namespace)

    def own_records(self) -> list[Record]:
        """The source's records in every namespace that has been read."""
        informers = self.informers
        return [
            record
            for namespace in informers.namespaces
            if informers.has_synced(namespace)
            for record in informers.records(namespace).all_records()
            if record.source == self.source
        ]

    def wait_until_completed(self, count: int, timeout: float | None) -> bool:
        """Whether so many jobs are completed within `timeout` seconds; None is for ever."""
        deadline = None if timeout is None else time.monotonic() + timeout
        with self._completion:
            while len(self.completed) < count:
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    return False
                self._completion.wait(min(left or 3600.0, 3600.0))
        return True

    def complete(self, key: JobKey, error: EngineError | None = None) -> None:
        """The job needs no more; `error` is why it was given up."""
        self.quota_queue.dequeue(key)
        with self._completion:
            self.completed[key] = error
            self._completion.notify_all()

    def give_back(self, key: JobKey) -> None:
        """A takeover of this job is over."""
        self.queue.done(key)

    def forget(self, key: JobKey) -> None:
        """Nothing is left to be done for a job without a spec; one that has a spec is kept."""
        self.quota_queue.dequeue(key)
        self.rate_limiter.forget(key)
        self._blocked.discard(key)
        self._unrecorded.pop(key, None)
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
    def unread(self) -> str:
        """What is yet to be read before it is ready; a namespace that comes later isn't waited for.

        Whoever writes specs could else take an engine out of service with one after the other.
        """
        if self._is_ready:
            return ""
        return ", ".join(sorted(self._unsynced)) or "which jobs there are"

    @property
    def unrecorded(self) -> str:
        """Which jobs wait because their records are refused; "" if none does."""
        waiting = sorted(self._unrecorded.copy().items())
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
        if state is None or key in self.completed:
            return True
        began, kind = time.monotonic(), ""
        try:
            requeue_after = self._reconcile(state)
        except EngineError as error:
            requeue_after, kind = self._on_error(state, error), type(error).__name__
        except Exception as error:  # noqa: BLE001 - one job's defect must not stop the others
            requeue_after, kind = self._on_defect(state, error), type(error).__name__
        self._note_unrecorded(state)
        self._dependencies.on_reconcile(time.monotonic() - began, kind)
        if requeue_after is None:
            self.queue.forget_delayed(key)
        else:
            self.queue.add_after(key, requeue_after)
        if self._until is not None and key not in self.completed:
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
            self.forget(key)
            return None
        if key in self._brake:
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
        key = state.job.key
        self.rate_limiter.forget(key)
        self._failing_since.pop(key, None)
        state.reported.error = ""
        if result.finished:
            self._on_finished(state)
            return None
        if self._until is not None and self._is_enough(state, result, self._until):
            self.complete(key)
            return None
        if result.requeue_at is None:
            return None
        return max(0.0, (result.requeue_at - self.client.now()).total_seconds())

    def _on_finished(self, state: JobState) -> None:
        key = state.job.key
        if not state.writes and not state.reported.unchanged and state.record is not None:
            self.emit(JobUnchanged(key, state.record.state))
        state.reported.unchanged = True
        state.release()
        if self._until is not None:
            self.complete(key)
        elif not self.store.is_desired(key):
            self.forget(key)

    def _is_enough(self, state: JobState, result: Result, until: Until) -> bool:
        """Whether nobody waits for the end of this job any longer."""
        key = state.job.key
        if result.started and until.started:
            return True
        if state.observed.rejection is None:
            self._queued_since.pop(key, None)
            return False
        since = self._queued_since.setdefault(key, time.monotonic())
        return time.monotonic() - since > until.queue_timeout

    def _note_unrecorded(self, state: JobState) -> None:
        key, rejection = state.job.key, state.observed.rejection
        if key in self.store and rejection and rejection.record_version is not None:
            self._unrecorded[key] = rejection.message
        else:
            self._unrecorded.pop(key, None)

    def _on_error(self, state: JobState, error: EngineError) -> float | None:
        """Report it and give up, or say when to try again: see the class."""
        key = state.job.key
        if self._gives_up(key, error):
            self.emit(ErrorReported(key, str(error), retrying=False))
            self.complete(key, error)
            return None
        longest = _MAX_BACKOFF if error.retryable else _MAX_BACKOFF_PERMANENT
        wait = self.rate_limiter.when(key, longest=longest)
        if isinstance(error, InvalidInputError):
            self._blocked.add(key)
            state.rendered = Rendered()
            self._report(state, *map(SpecProblem, error.problems))
        elif not error.retryable or self.rate_limiter.failures(key) >= _REPORT_AFTER:
            self._report(state, ErrorReported(key, str(error), retrying=True))
        return max(wait, error.retry_after)

    def _on_defect(self, state: JobState, error: Exception) -> float | None:
        """The same, for what is no error of the cluster or of a spec."""
        key = state.job.key
        found = EngineError(f"internal error: {type(error).__name__}", hint=_DEFECT)
        gives_up = self._gives_up(key, found)
        self.supervisor.report("job controller", error, key, retrying=not gives_up)
        if gives_up:
            self.complete(key, found)
            return None
        return self.rate_limiter.when(key, longest=_MAX_BACKOFF_PERMANENT)

    def _gives_up(self, key: JobKey, error: EngineError) -> bool:
        since = self._failing_since.setdefault(key, time.monotonic())
        until = self._until
        return until is not None and (
            not error.retryable or time.monotonic() - since > until.retry_timeout
        )

    def _report(self, state: JobState, *events: SpecProblem | ErrorReported) -> None:
        """Once for as long as the cause stays the same."""
        words = str(events)
        if state.reported.error != words:
            state.reported.error = words
            for event in events:
                self.emit(event)

    @property
    def _start_limit(self) -> StartLimit:
        return start_limit(self._max_starts, self.config.limits)

    def _release_starts(self) -> None:
        """Let jobs begin, unless there are more new runs among them than may."""
        released, refusal = self._brake.judge(self._start_limit, self._new_runs)
        for key in released:
            self.queue.add(key)
        if refusal is not None:
            self.emit(SpecProblem(str(refusal)))

    def _new_runs(self, keys: Iterable[JobKey]) -> dict[JobKey, NewRun] | None:
        """Those of the jobs that would begin one; None before their namespaces have been read."""
        found: dict[JobKey, NewRun] = {}
        for key in keys:
            if not self.informers.has_synced(key.namespace):
                return None
            state, pods = self.store.checkout(key), self.informers.pods(key.namespace).items(key)
            with suppress(BrokenRecordError):
                record = self.informers.records(key.namespace).newest(key, None)
                why = new_run(state.job, record, pods) if state is not None else None
                if why is not None:
                    found[key] = why
        return found

    def _until_tick(self) -> float:
        waits = self._unsynced or not self._is_ready
        return _SYNC_TICK if waits and not self.failing else _TICK

    def _tick(self) -> None:
        """What is to be seen to from time to time."""
        synced = {name for name in tuple(self._unsynced) if self.informers.has_synced(name)}
        self._unsynced -= synced
        for key in self.store.known if synced else ():
            if key.namespace in synced:
                self.queue.add(key)
        self._release_starts()
        if self._has_specs and not self._is_ready and not self._unsynced:
            self._is_ready = True
            self.emit(Ready())
        if not self.failing:
            self.on_watch_error.recovered()
        if time.monotonic() > self._resync_at:
            self._resync_at = time.monotonic() + _RESYNC_PERIOD
            for key in self.store.known:
                self.queue.add(key)

    def _drop_namespaces(self, changes: Changes) -> None:
        """A namespace that could never be read and that no spec names any more is left alone."""
        named = {key.namespace for key in self.store.desired}
        lost = {key.namespace for key in changes.removed} - named
        for name in sorted(lost & self._unsynced):
            self._unsynced.discard(name)
            self.informers.remove(name)
