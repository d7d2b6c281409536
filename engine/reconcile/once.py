"""`reconcile --once`: bring every job of a source to its end, then stop.

Nothing is written before everything that can be checked has been: secrets, templates, namespaces,
the right to read. A source whose jobs are all over costs a few reads and no watch, and a watch
begins where the reads ended, once a job has to wait.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.api.model import Config, Job
from engine.cluster.client import Client
from engine.cluster.discovery import check_server_version, missing_namespaces
from engine.cluster.records import RecordList
from engine.errors import BrokenRecordError, Diagnostic, EngineError, InvalidInputError, in_order
from engine.lifecycle.record import Record
from engine.prune.result import PruneResult
from engine.prune.source import SourcePruner, SourceState, find_gone
from engine.reconcile.controller import ControllerDependencies, JobController, StopCondition
from engine.reconcile.job_store import TrackedJob
from engine.refs import JobKey
from engine.render.templates import Templates
from engine.runtime.retry import retry_transient
from engine.status.outcome import State
from engine.telemetry.events import AttemptFailed, ErrorReported, Event, Notice

if TYPE_CHECKING:
    from engine.reconcile.failure_logs import LogEnd

_SHUTDOWN_TIMEOUT = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class OnceRequest:
    """Which jobs are to be reconciled, where, and how.

    Times are seconds; a `timeout` of None waits for as long as it takes.
    """

    client: Client
    jobs: Sequence[Job]
    config: Config
    templates: Templates
    source: str
    is_whole: bool = False
    """Whether the source has no other jobs for certain: only then can a spec be missed."""
    concurrency: int = 16
    timeout: float | None = None
    queue_timeout: float = 600.0
    until_started: bool = False
    """Whether it is enough that every job was started."""
    max_starts: int | None = None
    """How many new runs may begin; None for what `limits.maxStarts` says."""
    prune_in: tuple[str, ...] | None = None
    """None unless jobs without a spec are to be removed; else the namespaces where their records
    are looked for if the engine may not look everywhere.
    """


@dataclass(frozen=True, slots=True)
class JobResult:
    """What became of one job in this invocation; `over` is false where the wait ended first."""

    job: Job
    record: Record | None
    changed: bool
    over: bool
    error: EngineError | None = None
    log: "LogEnd | None" = None
    """Of what failed in this invocation, if there was a log."""


@dataclass(frozen=True, slots=True)
class OnceResult:
    """What became of the whole invocation."""

    jobs: tuple[JobResult, ...]
    """Every job of the source."""
    timed_out: bool = False
    """Whether --timeout was reached."""
    interrupted: bool = False
    """Whether Ctrl-C ended it."""


class RunOnce:
    """A job controller over a fixed set of jobs, until each of them is completed."""

    def __init__(self, request: OnceRequest, dependencies: ControllerDependencies) -> None:
        self._request = request
        self._emit = dependencies.emit
        self._controller = JobController(
            request.client,
            request.source,
            request.concurrency,
            replace(dependencies, emit=self._on_event),
            StopCondition(request.until_started, request.queue_timeout),
        )
        self._controller.configure(request.config, request.templates)
        self._jobs = {job.key: job for job in request.jobs}
        self._namespaces = sorted({key.namespace for key in self._jobs})
        self._logs: dict[JobKey, LogEnd | None] = {}
        """Of the last attempt that failed of each job."""
        self._gone: RecordList | None = None
        """Records of the jobs that are to be removed afterwards; None where none is."""

    def run(self) -> OnceResult:
        """Bring every job to its end, or to its start.

        Errors, before anything is written: InvalidInputError; UsageError where more runs would
        begin than may; ClusterError. Afterwards every error is a job's own.
        """
        controller, request = self._controller, self._request
        retry_transient(self._list, controller.on_watch_error, timeout=request.timeout)
        states = self._preflight()
        self._check_starts(states)
        # A removal that isn't reported before anything is written doesn't follow afterwards.
        if request.prune_in is not None:
            self._gone = find_gone(request.client, request.source, self._jobs, request.prune_in)
            for key in self._gone.items:
                words = f"no spec in source {request.source} any more; the job will be removed"
                controller.emit(Notice(words, key))
        for tracked in states:
            key = tracked.job.key
            if not tracked.is_finished(request.source) or tracked.needs_cleanup(self._pods(key)):
                controller.queue.add(key)
            else:
                controller.report_unchanged(tracked)
                controller.complete(key)
        timed_out = interrupted = False
        if len(controller.queue):
            controller.start()
            try:
                timed_out = not controller.wait_for_completion(len(self._jobs), request.timeout)
            except KeyboardInterrupt:
                interrupted = True
            controller.stop(_SHUTDOWN_TIMEOUT)
        results = tuple(map(self._result, self._jobs))
        return OnceResult(results, timed_out, interrupted)

    def prune(self, *, logs_dir: Path | None = None) -> PruneResult:
        """Prune once the jobs are reconciled: pods as last seen, records as first seen."""
        request, pods, records = self._request, list[dict[str, Any]](), list[Record]()
        for name in self._namespaces:
            pods += self._controller.informers.pods(name).all_items()
            records += self._controller.informers.records(name).all_records()
        is_desired, is_whole = self._jobs.__contains__, request.is_whole
        seen = SourceState(is_desired, is_whole, self._namespaces, pods, records)
        pruner = SourcePruner(
            client=request.client,
            source=request.source,
            ages=is_whole and self._gone is None,
            concurrency=request.concurrency,
            logs_dir=logs_dir,
        )
        return pruner.prune(request.config, seen, lambda _entry: None, self._gone)

    def _list(self) -> None:
        """Read all records and pods of the jobs' namespaces. Errors: ClusterError."""
        check_server_version(self._request.client)
        self._controller.informers.list_all(self._namespaces)

    def _preflight(self) -> list[TrackedJob]:
        """The jobs whose records can be read; an unreadable one is an error of its job alone.

        Errors: InvalidInputError with every problem of every job.
        """
        controller, states = self._controller, list[TrackedJob]()
        problems, to_create = list[Diagnostic](), list[Job]()
        controller.store.desired = self._jobs
        for key, job in self._jobs.items():
            tracked = controller.store.checkout(key) or TrackedJob(job)
            try:
                tracked.record = controller.informers.records(key.namespace).newest(key, None)
            except BrokenRecordError as error:
                controller.emit(ErrorReported(key, str(error), retrying=False))
                controller.complete(key, error)
                continue
            states.append(tracked)
            if tracked.record is None:
                to_create.append(job)
            try:
                controller.prepare(tracked)
            except InvalidInputError as error:
                problems += error.problems
        problems += retry_transient(partial(missing_namespaces, controller.client, to_create))
        if problems:
            raise InvalidInputError(in_order(problems))
        return states

    def _check_starts(self, states: Iterable[TrackedJob]) -> None:
        """Errors: UsageError where more runs would begin than may."""
        flag, limits = self._request.max_starts, self._request.config.limits
        if flag is None and limits.max_starts is None:
            return
        from engine.lifecycle.max_starts import MaxStarts, new_run  # noqa: PLC0415 - rarely needed

        limit = MaxStarts.of(flag, limits)
        found = ((s.job.key, new_run(s.job, s.record, self._pods(s.job.key))) for s in states)
        limit.check({key: why for key, why in found if why is not None})

    def _pods(self, key: JobKey) -> tuple[dict[str, Any], ...]:
        """The pods of a job, as last seen."""
        return self._controller.informers.pods(key.namespace).items(key)

    def _result(self, key: JobKey) -> JobResult:
        completed, job = self._controller.completed, self._jobs[key]
        tracked = self._controller.store.checkout(key) or TrackedJob(job)
        record = tracked.unrecorded or tracked.record
        if record is not None and not record.state.is_final:
            from engine.lifecycle.observed_status import as_observed  # noqa: PLC0415 - if needed

            record = tracked.unrecorded or as_observed(record, self._pods(key))
        return JobResult(
            job,
            record,
            changed=tracked.writes > 0,
            over=key in completed,
            error=completed.get(key),
            log=self._logs.get(key) if record and record.state is State.FAILED else None,
        )

    def _on_event(self, event: Event) -> None:
        if isinstance(event, AttemptFailed):
            from engine.reconcile.failure_logs import read_failure_log  # noqa: PLC0415 - if needed

            self._logs[event.key] = read_failure_log(self._request.client, event)
        self._emit(event)
