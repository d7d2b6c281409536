"""The job controller: a queue of jobs, workers that reconcile them, and one failure policy.

`reconcile --once` gives it jobs once, and a condition to stop at; an engine that stays gives it
jobs whenever its specs change, and runs it under a manager.
"""

import math
import os
import re
import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from engine.api.model import Config, Job, JobObject
from engine.cluster.api import CONFIG_MAPS, PODS
from engine.cluster.client import Client
from engine.cluster.discovery import may_list
from engine.errors import (
    BrokenRecordError,
    ClaimedError,
    ConflictError,
    EngineError,
    ForbiddenError,
    InvalidInputError,
    NotFoundError,
)
from engine.informers.factory import InformerFactory, stop_all
from engine.informers.reflector import Reflector, WatchContext, WatchErrorReporter
from engine.lifecycle.attempt import RenderConfig
from engine.lifecycle.object_status import CLAIMED, INVALID, Refusals
from engine.lifecycle.predecessors import JobOrder
from engine.lifecycle.record import Attempt, Record
from engine.lifecycle.state import Observation
from engine.prune.result import PruneEntry
from engine.prune.source import SourceState
from engine.reconcile.failure_policy import judge_failure
from engine.reconcile.job_store import Changes, JobStore, Rendered, TrackedJob
from engine.reconcile.nodes import DrainReporter, ImageLocator
from engine.reconcile.options import RunOptions
from engine.reconcile.pull_scout import PullScout
from engine.reconcile.quota_queue import QuotaQueue
from engine.reconcile.reconciler import Reconciler, Result
from engine.reconcile.reporter import AttemptReporter
from engine.reconcile.start_limiter import StartLimiter
from engine.refs import JobKey
from engine.render.templates import Templates
from engine.runtime.retry import RateLimiter, retry_transient
from engine.runtime.supervisor import SupervisedThread, Supervisor
from engine.runtime.workqueue import WorkQueue
from engine.status.outcome import Reason
from engine.telemetry.events import (
    Emit,
    JobUnchanged,
    JobUnmanaged,
    Notice,
    ObjectPruned,
    Ready,
    SpecProblem,
)
from engine.telemetry.redact import Redactor
from engine.wellknown import SOURCE

if TYPE_CHECKING:
    from engine.cluster.logs import LogArchive
    from engine.runtime.membership import Membership

_TICK, _SYNC_TICK = 1.0, 0.02
_STALL_TIMEOUT, _MAX_RECONCILE, _RETRY_AFTER = 60.0, 600.0, 5.0
_RETRY_TIMEOUT = 300.0
"""How long the cluster may fail a job of an engine that doesn't stay."""
_RESYNC_PERIOD, _DRAINS_PERIOD = 600.0, 15.0
_SHUTDOWN_TIMEOUT = 5.0
_NOT_A_MEMBER = 1.0
_NOT_OF_A_NAME = re.compile("[^-_.0-9A-Za-z]")


class ControllerDependencies(Struct, frozen=True):
    """What a controller gets from outside: the process's environment, and who listens."""

    environment: Mapping[str, str]
    redactor: Redactor
    emit: Emit
    on_reconcile: Callable[[float, str], None] | None = None
    """Gets the seconds of each reconcile and the class of its error."""
    on_queue_latency: Callable[[float], None] | None = None
    """Gets for how many seconds a job was ready before a worker took it."""
    logs: "LogArchive | None" = None
    """Where the logs of each attempt are saved at its end."""


class JobController:
    """Reconciles the jobs of one source. Safe to use from several threads.

    It owns the queue and hands each key to the reconciler, if that may be: not before the namespace
    has been read, nor while the job is another engine's, nor more new runs at once than are allowed
    (`StartLimiter`). What comes of it goes to the quota's queue, to `judge_failure`,
    or, unless it `stays`, to `completed`.

    Guarantees: a job's reconcile never runs twice at once. A job whose spec is gone isn't started
    any more, but what runs of it goes on to its outcome. A worker's defect is reported, and its job
    reconciled again.
    """

    def __init__(
        self,
        client: Client,
        options: RunOptions,
        dependencies: ControllerDependencies,
        *,
        stays: bool,
    ) -> None:
        self.client = client
        self.options = options
        self.source = options.source
        self.emit = dependencies.emit
        self.store = JobStore()
        self.queue: WorkQueue[JobKey] = WorkQueue(dependencies.on_queue_latency)
        self.supervisor = Supervisor(self.emit)
        self.retries = 0
        """How many reconciles are tried again after an error."""
        self.on_watch_error = WatchErrorReporter(self.emit)
        self.context = WatchContext(
            client, self.supervisor, self._on_change, self.on_watch_error, self._on_list
        )
        self.informers = InformerFactory(self.context, self.source, options.records)
        self._retry_limiter = RateLimiter(rate=100, burst=500)
        self.quota_queue = QuotaQueue(self.context, self.queue.add_after)
        self.start_limiter = StartLimiter(self.store, self.informers, options.max_starts)
        """Of an engine that stays; `--once` counts its new runs before it starts any."""
        self._image_locator = ImageLocator(client)
        self._drain_reporter = DrainReporter(client, self.emit)
        self._pull_scout = PullScout(self.queue.add)
        self.config: Config
        """What `configure` was given last."""
        self.membership: Membership | None = None
        """Which jobs are this engine's; None where all are."""
        self.remove: Callable[[JobKey], float | None] = lambda _key: None
        """Removes a job whose spec is gone, and says when to go on; None for any other job."""
        self.completed: dict[JobKey, EngineError | None] = {}
        """Jobs that need no more, as the options say; why each was given up, if it was."""
        self._completion = threading.Condition()
        self._dependencies = dependencies
        self._stays = stays
        self._render_config: RenderConfig
        self._reconciler: Reconciler
        self.refused: Refusals = {}
        """Objects that make no job by now, and why."""
        self._blocked: set[JobKey] = set()
        """Jobs with problems in secrets or templates: another file may help."""
        self._resync_at = time.monotonic() + _RESYNC_PERIOD
        self._drains_at = 0.0
        self._workers: list[SupervisedThread] = []

    def configure(self, config: Config, templates: Templates) -> None:
        """Put `config` in force; what was prepared under another one is prepared anew."""
        self.config = config
        self.start_limiter.configure(config.limits)
        self._render_config = RenderConfig(templates, self.source, config.limits)
        self._reconciler = Reconciler(
            self.client,
            self.informers,
            self._render_config,
            self._image_locator.hosts_with,
            AttemptReporter(self.client, self.emit, config.features.events, self.on_attempt_end),
            self._dependencies.redactor,
            config.pull,
            config.records.history,
            self.owns,
            _NOT_OF_A_NAME.sub("", f"{socket.gethostname()}_{os.getpid()}"),
            on_created=self.quota_queue.dequeue,
            scout=self._pull_scout if config.pull.scout else None,
        )

    def on_attempt_end(self, record: Record, attempt: Attempt) -> None:
        """Save its log, if logs are to be kept."""
        logs = self._dependencies.logs
        if logs is not None:
            for cause in logs.save_attempt(self.client, record.key, attempt):
                words = f"the log of pod {attempt.pod} could not be saved: {cause}"
                self.emit(Notice(words, record.key, warning=True))

    def start(self) -> None:
        """Begin to reconcile what is in the queue."""
        count = self.options.concurrency
        for number in range(count if self._stays else min(count, len(self.queue))):
            self._workers.append(self.supervisor.start(f"worker-{number}", self._work))

    def stop(self, seconds: float) -> None:
        """Begin nothing new; bring to its next safe point what is half-way."""
        self.queue.shut_down()
        deadline = time.monotonic() + seconds
        for worker in self._workers:
            worker.join(deadline - time.monotonic())
        stop_all(self.reflectors())

    def run(self, stop: threading.Event, heartbeat: Callable[[float], None]) -> None:
        """Reconcile, and see to what comes with time, until `stop` is set."""
        if not self._workers:
            self.start()
        while not stop.wait(_SYNC_TICK if self.informers.waits and not self.failing else _TICK):
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
            self.informers.watch(key.namespace)
        # Namespaces that no spec names any more.
        named = {key.namespace for key in self.store.desired}
        self.informers.drop({key.namespace for key in changes.removed} - named)
        for key in (*changes.added, *changes.changed, *changes.removed, *tuple(self._blocked)):
            self.queue.add(key)
        self._release_starts()
        self.informers.has_specs = True
        return changes

    def refuse(self, problems: Refusals) -> None:
        """Have the status of these objects say what is wrong with them, and start nothing."""
        changed = problems.items() ^ self.refused.items()
        self.refused = dict(problems)
        for key, _ in changed:
            self.queue.add(key)

    def watch_namespaces_with_records(self, home: str) -> None:
        """Watch where the source has records, and perhaps no spec any more.

        Without the right to look everywhere, that is `home`, if it may be read.
        Errors: those of a list that fails for long.
        """
        if not may_list(self.client, CONFIG_MAPS):
            if all(may_list(self.client, kind, home) for kind in (CONFIG_MAPS, PODS)):
                self.informers.watch(home)
            return
        listed = partial(self.options.records.list, self.client, "", f"{SOURCE}={self.source}")
        with suppress(ForbiddenError):
            for key in retry_transient(listed, self.on_watch_error).items:
                self.informers.watch(key.namespace)

    def complete(self, key: JobKey, error: EngineError | None = None) -> None:
        """The job needs no more; `error` is why it was given up."""
        self.quota_queue.dequeue(key)
        self._pull_scout.release(key)
        with self._completion:
            self.completed[key] = error
            self._completion.notify_all()
        self._call_followers(key)

    def wait_for_completion(self, count: int, timeout: float | None) -> bool:
        """Whether so many jobs are completed within `timeout` seconds; None is for ever."""
        end = math.inf if timeout is None else time.monotonic() + timeout
        with self._completion:
            while len(self.completed) < count and (left := end - time.monotonic()) > 0:
                # Not for longer: a signal that another thread took is acted on in this one.
                self._completion.wait(min(left, _TICK))
            return len(self.completed) >= count

    def forget(self, key: JobKey) -> None:
        """Nothing is left to be done for a job without a spec; one that has a spec is kept."""
        self.quota_queue.dequeue(key)
        self._blocked.discard(key)
        self._pull_scout.release(key)
        if self.store.forget(key):
            self._dependencies.redactor.forget(key)
            self.emit(JobUnmanaged(key))

    def reflectors(self) -> list[Reflector]:
        """Every watch there is."""
        return [*self.informers.reflectors(), *self.quota_queue.reflectors()]

    @property
    def failing(self) -> list[Reflector]:
        """Watches that hear nothing at the moment."""
        return [reflector for reflector in self.reflectors() if reflector.failing]

    @property
    def unheard(self) -> str:
        """A line on the first watch whose failure stops the engine; "" without one.

        That a namespace may not be read is no matter of the jobs in others.
        """
        all_refused = all(r.failing and r.refused for r in self.informers.reflectors())
        lines = (f"{r.path}: {r.failing}" for r in self.failing if all_refused or not r.refused)
        return next(lines, "")

    @property
    def is_member(self) -> bool:
        """Whether this engine may write."""
        return self.membership is None or self.membership.is_member

    @property
    def leads(self) -> bool:
        """Whether what is to be done once for the source is this engine's."""
        return self.membership is None or self.membership.owns("")

    def on_members(self) -> None:
        """Jobs may have another owner: look at each whose it is."""
        for key in self.store.known:
            self.queue.add(key)

    def owns(self, key: JobKey) -> bool:
        """Whether the job is this engine's to reconcile."""
        if self.membership is None:
            return True
        record = None
        with suppress(BrokenRecordError):
            if self.informers.has_synced(key.namespace):
                record = self.informers.records(key.namespace).newest(key, None)
        return self.membership.owns(str(key) if record is None else record.owned_by_name)

    def _on_change(self, key: JobKey) -> None:
        if key in self.store or key in self.refused:
            self.queue.add(key)

    def _on_list(self) -> None:
        """Queue the jobs that waited for their namespace to be read."""
        if synced := self.informers.newly_synced():
            for key in self.store.known:
                if key.namespace in synced:
                    self.queue.add(key)

    def _work(self, thread: SupervisedThread) -> None:
        while True:
            thread.expect(math.inf)
            key = self.queue.get()
            if key is None:
                return
            thread.expect(_MAX_RECONCILE)
            try:
                self._handle(key)
            except Exception:
                self.queue.add_after(key, _RETRY_AFTER)
                raise
            finally:
                self.queue.done(key)

    def _handle(self, key: JobKey) -> None:
        """Reconcile one job, if it is this engine's turn."""
        if not self.is_member:
            self.queue.add_after(key, _NOT_A_MEMBER)
            return
        if key in self.refused and self.owns(key):
            seen, words = self.refused[key]
            self.report_refusal(key, seen, INVALID, words)
        if self.owns(key) and (wait := self.remove(key)) is not None:
            self.forget(key)
            self.queue.add_after(key, wait)
            return
        tracked = self.store.checkout(key)
        if tracked is None or key in self.completed:
            return
        if not self.owns(key):
            self._leave_to_owner(tracked)
            return
        began, kind = time.monotonic(), ""
        try:
            requeue_after = self._reconcile(tracked)
        except Exception as error:  # noqa: BLE001 - one job's defect must not stop the others
            requeue_after, kind = self._on_failure(tracked, error), type(error).__name__
        if self._dependencies.on_reconcile is not None:
            self._dependencies.on_reconcile(time.monotonic() - began, kind)
        if requeue_after is not None:
            self.queue.add_after(key, requeue_after)
        self._report_to_followers(tracked)
        if not (self._stays or key in self.completed):
            self.informers.pods(key.namespace).start()

    def _leave_to_owner(self, tracked: TrackedJob) -> None:
        """Another engine reconciles the job: it leaves the line here, and its secrets go."""
        key = tracked.job.key
        self.quota_queue.dequeue(key)
        self._report_to_followers(tracked)
        tracked.rendered = Rendered()
        if key not in self.store.desired and self.informers.has_synced(key.namespace):
            with suppress(EngineError):
                found = self.informers.records(key.namespace).newest(key, tracked.record)
                tracked.record = found
                if not self._has_started(tracked):
                    self.forget(key)

    def _reconcile(self, tracked: TrackedJob) -> float | None:
        """Seconds until the job is to be reconciled without an event; None for not before one."""
        key = tracked.job.key
        desired = key in self.store.desired
        if not self.informers.has_synced(key.namespace):
            if not desired:
                self.forget(key)
            return None
        if self._stays:
            known = tracked.record
            tracked.record = self.informers.records(key.namespace).newest(key, known)
            if known is not None and tracked.record is None:
                self.start_limiter.recount(key)
        seen = tracked.job.object if tracked.record is None else None
        if desired and seen is not None and self._stays:
            spec = self.informers.spec_of(key)
            if spec is None or not spec.text or spec.object.uid != seen.uid:
                return None  # it is gone: the next reading of the specs is about to say so
        if not desired and (seen is not None or not self._has_started(tracked)):
            self._reconciler.reporter.report_end(tracked)
            self.forget(key)
            return None
        tracked.observed.suspended = key in self.start_limiter
        if tracked.observed.suspended and tracked.record is None:
            return None
        tracked.observed.refused = key in self.refused
        self.prepare(tracked)
        waits_in_vain = self._look_at_predecessors(tracked)
        rejection = tracked.observed.rejection
        if rejection is not None and self.quota_queue.take_turn(key):
            tracked.observed.rejection = replace(rejection, retry_at=self.client.now())
        result = self._reconciler.reconcile(tracked)
        record = tracked.unrecorded or tracked.record
        if tracked.observed.rejection is None or result.finished:
            self.quota_queue.dequeue(key)
        elif record is not None:
            self.quota_queue.enqueue(key, record.queued_at or self.client.now())
        requeue_after = self._on_success(tracked, result)
        if waits_in_vain and not (record and record.attempts):
            self.complete(key)
        return requeue_after

    @property
    def _order(self) -> JobOrder:
        return JobOrder(self.store.desired, self.store.needs, self._record_of, self.source)

    def _record_of(self, key: JobKey) -> Record | None:
        with suppress(BrokenRecordError):
            known = self.store.record_of(key)
            return self.informers.records(key.namespace).newest(key, known)
        return None

    def _look_at_predecessors(self, tracked: TrackedJob) -> bool:
        """Whether one of them was given up, or needs no more of this engine, and is not over.

        As long as there is one to wait for, no quota is asked.
        """
        key, observed = tracked.job.key, tracked.observed
        no_more = self.completed.keys() & {one.key for one in self.store.needs.get(key, ())}
        observed.predecessors = self._order.predecessors(key)
        waiting = {one.key for one in observed.predecessors if one.ended is None}
        if waiting and observed.rejection and observed.rejection.record_version is None:
            observed.rejection = None
        return not waiting.isdisjoint(no_more)

    def _report_to_followers(self, tracked: TrackedJob) -> None:
        """Of a job whose end is another one than they know."""
        key = tracked.job.key
        if key in self.store.followers:
            end = self._order.ended(key)
            outcome = end and (end.state, end.reason)
            # Whether that failure stays depends on yet another job.
            if outcome != tracked.reported_end or (end and end.reason is Reason.DEPENDENCY_FAILED):
                tracked.reported_end = outcome
                self._call_followers(key)

    def _call_followers(self, key: JobKey) -> None:
        for follower in self.store.followers.get(key, ()):
            self.queue.add(follower)

    def prepare(self, tracked: TrackedJob) -> None:
        """As `TrackedJob.prepare`, under the configuration in force."""
        key, outside = tracked.job.key, self._dependencies
        pods = self.informers.pods(key.namespace).items(key)
        tracked.prepare(self._render_config, outside.environment, outside.redactor, pods)
        self._blocked.discard(key)

    def _has_started(self, tracked: TrackedJob) -> bool:
        """Whether there is anything to see through to its end.

        Where a watch may not tell in time of a pod whose create was never answered, the API is
        asked. Errors: those of the list.
        """
        record, key = tracked.record, tracked.job.key
        if record is not None and record.state.is_final:
            return False
        informer = self.informers.pods(key.namespace)
        if tracked.observed.create_unanswered:
            informer.refresh((key.name,))
            tracked.observed.create_unanswered = False
        has_attempt = record is not None and record.open_attempt is not None
        return has_attempt or tracked.has_begun(informer.items(key))

    def _on_success(self, tracked: TrackedJob, result: Result) -> float | None:
        key, now, options = tracked.job.key, time.monotonic(), self.options
        tracked.failures, tracked.reported_error = 0, ""
        if tracked.observed.rejection is None:
            tracked.queued_since = 0.0
        elif not tracked.queued_since:
            tracked.queued_since = now
        if result.finished:
            if not (tracked.writes or tracked.unchanged or tracked.reported_state):
                self.report_unchanged(tracked)
            tracked.unchanged = True
            # Keep no more than says that the run is over, least of all a secret.
            tracked.rendered, tracked.observed = Rendered(), Observation()
            if self._stays and key not in self.store.desired:
                self.forget(key)
        is_enough = options.wait == "applied" and not self._pull_scout.is_awaited(key)
        if not self._stays and (
            result.finished
            or (result.started and is_enough)
            or (tracked.job.suspend and not result.started)
            or (tracked.queued_since and now - tracked.queued_since > options.queue_timeout)
        ):
            self.complete(key)
            return None
        if result.finished or result.requeue_at is None:
            return None
        return max(0.0, (result.requeue_at - self.client.now()).total_seconds())

    def report_unchanged(self, tracked: TrackedJob) -> None:
        """The run was over before this engine saw it."""
        if tracked.record is not None:
            self.emit(JobUnchanged(tracked.job.key, tracked.record.state))

    def source_state(self, *, is_whole: bool) -> SourceState:
        """What is known of the source; `is_whole` if a job without a spec has none for certain."""
        found, contains = self.informers, self.store.__contains__
        return SourceState(
            contains, is_whole, found.namespaces, found.all_pods(), found.own_records()
        )

    def report_pruned(self, entry: PruneEntry) -> None:
        """An object that was pruned, or could not be."""
        self.emit(ObjectPruned(entry.ref, entry.action, entry.reason))

    def _on_failure(self, tracked: TrackedJob, error: Exception) -> float | None:
        """Seconds until the job is tried again; None if it is given up."""
        key, seen = tracked.job.key, tracked.job.object
        if seen is not None and isinstance(error, NotFoundError):
            return None  # the watch is about to say that the object is gone
        if seen is not None and isinstance(error, ClaimedError):
            self.report_refusal(key, seen, CLAIMED, error.cause)
        if seen is not None and isinstance(error, InvalidInputError):
            words = "; ".join(problem.words for problem in error.problems)
            self.report_refusal(key, seen, INVALID, words)
        retry_timeout = None if self._stays else _RETRY_TIMEOUT
        verdict = judge_failure(tracked, error, retry_timeout, self.supervisor)
        if isinstance(verdict, EngineError):
            self.complete(tracked.job.key, verdict)
            return None
        if isinstance(error, InvalidInputError):
            self._blocked.add(tracked.job.key)
            tracked.rendered = Rendered()
        self.retries += 1
        return max(verdict, self._retry_limiter.reserve(time.monotonic()))

    def report_refusal(self, key: JobKey, seen: JobObject, reason: str, words: str) -> None:
        """Have the status of an object say so. Errors: none; it is tried again."""
        from engine.reconcile.object_source import report_refusal  # noqa: PLC0415 - rarely needed

        spec = self.informers.spec_of(key)
        if spec is None:
            return
        try:
            words = self._dependencies.redactor.of(key)(words)
            events = self.config.features.events
            report_refusal(self.client, spec, seen, reason, words, events)
        except EngineError as error:
            self.queue.add_after(key, _RETRY_AFTER)
            if not isinstance(error, ConflictError):
                self.on_watch_error(f"status of {key}: {error.cause}")

    def _release_starts(self) -> None:
        """Let jobs begin, unless there are more new runs among them than may."""
        released, errors = self.start_limiter.release()
        for key in released:
            self.queue.add(key)
        for error in errors:
            self.emit(SpecProblem(str(error)))

    def _tick(self) -> None:
        """What is to be seen to from time to time."""
        now = time.monotonic()
        self._on_list()
        if now > self._resync_at:
            self._resync_at = now + _RESYNC_PERIOD
            for key in self.store.known:
                self.queue.add(key)
        self._release_starts()
        if now > self._drains_at and self.leads:
            self._drains_at = now + _DRAINS_PERIOD
            pods, on_pods = self.informers.all_pods(), self.config.features.events
            self._drain_reporter.report(pods, on_pods=on_pods)
        if self.informers.becomes_ready():
            self.emit(Ready())
        if not self.failing:
            self.on_watch_error.recovered()
