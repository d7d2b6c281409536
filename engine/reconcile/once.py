"""`reconcile --once`: bring every job of a source to its end, then stop.

Nothing is written before everything that can be checked has been: secrets, templates, namespaces,
the right to read. A source whose jobs are all over costs a few reads and no watch, and a watch
begins where the reads ended, once a job has to wait.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine.api.model import Job
from engine.cluster.discovery import check_server_version
from engine.cluster.records import RecordList
from engine.errors import BrokenRecordError
from engine.lifecycle.record import Record
from engine.prune.result import OnEntry, PruneResult
from engine.prune.source import SourcePruner, SourceState, find_gone
from engine.reconcile.completion import StopCondition
from engine.reconcile.controller import ControllerDependencies, JobController
from engine.reconcile.job_store import TrackedJob
from engine.reconcile.once_result import JobResult, LogEnd, OnceRequest, OnceResult
from engine.reconcile.preflight import preflight
from engine.refs import JobKey
from engine.runtime.retry import retry_transient
from engine.status.outcome import State
from engine.telemetry.events import AttemptFailed, ErrorReported, Event, JobUnchanged, Notice

_SHUTDOWN_TIMEOUT = 10.0


class RunOnce:
    """A job controller over a fixed set of jobs, until each of them is completed."""

    def __init__(self, request: OnceRequest, dependencies: ControllerDependencies) -> None:
        until = StopCondition(request.until_started, request.queue_timeout)
        self._request = request
        self._emit = dependencies.emit
        self._dependencies = dependencies = replace(dependencies, emit=self._on_event)
        self._controller = JobController(
            request.client, request.source, request.concurrency, dependencies, until
        )
        self._render_config = self._controller.configure(request.config, request.templates)
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
        controller.store.update(self._jobs)
        states = [self._state(job) for job in self._jobs.values()]
        unfinished = self._preflight(s for s in states if s.job.key not in controller.completion)
        self._check_starts(unfinished)
        self._announce_removals()
        waiting = [
            key for tracked in states if self._needs_work(tracked) and (key := tracked.job.key)
        ]
        timed_out = interrupted = False
        if waiting:
            for key in waiting:
                controller.queue.add(key)
            controller.start(min(request.concurrency, len(waiting)))
            try:
                timed_out = not controller.completion.wait(len(states), request.timeout)
            except KeyboardInterrupt:
                interrupted = True
            controller.stop(_SHUTDOWN_TIMEOUT)
        results = tuple(self._result(tracked) for tracked in states)
        return OnceResult(results, timed_out, interrupted)

    def prune(self, *, logs_dir: Path | None = None, on_entry: OnEntry) -> PruneResult:
        """Prune once the jobs are reconciled: pods as last seen, records as first seen.

        `on_entry` is called for each object as soon as it is settled.
        """
        informers, names, request = self._controller.informers, self._namespaces, self._request
        pods = [pod for name in names for pod in informers.pods(name).all_items()]
        records: list[Record] = []
        for name in names:
            records += informers.records(name).all_records()
        seen = SourceState(self._jobs.__contains__, request.is_whole, names, pods, records)
        pruner = SourcePruner(
            request.client,
            request.source,
            ages=request.is_whole and self._gone is None,
            concurrency=request.concurrency,
            logs_dir=logs_dir,
        )
        return pruner.prune(request.config, seen, on_entry, self._gone)

    def _list(self) -> None:
        """Read all records and pods of the jobs' namespaces. Errors: ClusterError."""
        check_server_version(self._request.client)
        self._controller.informers.list_all(self._namespaces)

    def _state(self, job: Job) -> TrackedJob:
        """A record that can't be read is an error of its job alone."""
        controller, key = self._controller, job.key
        tracked = controller.store.checkout(key) or TrackedJob(job)
        try:
            tracked.record = controller.informers.records(key.namespace).newest(key, None)
        except BrokenRecordError as error:
            controller.emit(ErrorReported(key, str(error), retrying=False))
            controller.complete(key, error)
        return tracked

    def _preflight(self, states: Iterable[TrackedJob]) -> Sequence[TrackedJob]:
        """Those whose run isn't over, once nothing is wrong with them.

        Errors: InvalidInputError with every problem.
        """
        request, dependencies = self._request, self._dependencies
        unfinished = [one for one in states if not one.is_finished(request.source)]
        started = {one.job.key for one in unfinished if one.is_started(self._pods(one.job.key))}
        environment, redactor = dependencies.environment, dependencies.redactor
        preflight(request.client, unfinished, started, self._render_config, environment, redactor)
        return unfinished

    def _check_starts(self, unfinished: Iterable[TrackedJob]) -> None:
        """Errors: UsageError where more runs would begin than may."""
        flag, limits = self._request.max_starts, self._request.config.limits
        if flag is None and limits.max_starts is None:
            return
        from engine.lifecycle.max_starts import MaxStarts, new_run  # noqa: PLC0415 - rarely needed

        limit = MaxStarts.of(flag, limits)
        found = ((s.job.key, new_run(s.job, s.record, self._pods(s.job.key))) for s in unfinished)
        limit.check({key: why for key, why in found if why is not None})

    def _announce_removals(self) -> None:
        """A removal that isn't reported before anything is written doesn't follow afterwards."""
        request = self._request
        if request.prune_in is not None:
            keys = self._jobs.keys()
            self._gone = find_gone(request.client, request.source, keys, request.prune_in)
        for key in self._gone.items if self._gone is not None else ():
            words = f"no spec in source {request.source} any more; the job will be removed"
            self._controller.emit(Notice(words, key))

    def _pods(self, key: JobKey) -> tuple[dict[str, Any], ...]:
        """The pods of a job, as last seen."""
        return self._controller.informers.pods(key.namespace).items(key)

    def _needs_work(self, tracked: TrackedJob) -> bool:
        key = tracked.job.key
        if key in self._controller.completion:
            return False
        finished = tracked.is_finished(self._request.source)
        if not finished or tracked.needs_cleanup(self._pods(key)):
            return True
        if tracked.record is not None:
            self._controller.emit(JobUnchanged(key, tracked.record.state))
        self._controller.complete(key)
        return False

    def _result(self, tracked: TrackedJob) -> JobResult:
        completed = self._controller.completion.errors
        key, record = tracked.job.key, tracked.unrecorded or tracked.record
        if record is not None and not record.state.is_final:
            from engine.lifecycle.observed_status import as_observed  # noqa: PLC0415 - if needed

            record = tracked.unrecorded or as_observed(record, self._pods(key))
        failed = record is not None and record.state is State.FAILED
        return JobResult(
            tracked.job,
            record,
            changed=tracked.writes > 0,
            over=key in completed,
            error=completed.get(key),
            log=self._logs.get(key) if failed else None,
        )

    def _on_event(self, event: Event) -> None:
        if isinstance(event, AttemptFailed):
            from engine.reconcile.failure_logs import read_failure_log  # noqa: PLC0415 - if needed

            self._logs[event.key] = read_failure_log(self._request.client, event)
        self._emit(event)
