"""`reconcile --once`: bring every job of a source to its end, then stop.

Nothing is written before everything that can be checked has been: secrets, templates, namespaces,
the right to read. A source whose jobs are all over costs a few reads and no watch, and a watch
begins where the reads ended, once a job has to wait.
"""

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from functools import partial
from signal import SIGTERM
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from engine.api.model import Config, Job
from engine.cluster import api
from engine.cluster.client import Client
from engine.cluster.discovery import check_server_version, missing_namespaces
from engine.errors import (
    BrokenRecordError,
    ConflictError,
    Diagnostic,
    EngineError,
    InvalidInputError,
    NotFoundError,
    in_order,
)
from engine.lifecycle.object_status import INVALID, Refusals
from engine.lifecycle.orphan import living_or_due
from engine.lifecycle.outdated import outdated_fields
from engine.lifecycle.ownership import NeverRan
from engine.lifecycle.record import RERUN, Record, mask_record
from engine.lifecycle.rename import renames
from engine.lifecycle.state import name_of, uid_of
from engine.prune.result import PruneResult
from engine.prune.source import GoneJobs, SourcePruner, missed
from engine.reconcile.controller import ControllerDependencies, JobController
from engine.reconcile.job_store import TrackedJob
from engine.reconcile.options import RunOptions
from engine.refs import JobKey, Ref
from engine.render.templates import Templates
from engine.runtime.retry import retry_transient
from engine.status.outcome import State
from engine.telemetry.events import AttemptFailed, ErrorReported, Event, LogEnd, Notice

_SHUTDOWN_TIMEOUT = 10.0


class OnceRequest(Struct, frozen=True):
    """Which jobs are to be reconciled, where, and how."""

    client: Client
    jobs: Sequence[Job]
    refused: Refusals
    """Objects that make no job, and why: their status is to say so."""
    config: Config
    templates: Templates
    options: RunOptions
    is_whole: bool = False
    """Whether the source has no other jobs for certain: only then can a spec be missed."""
    gone: GoneJobs | None = None
    """Jobs that are to be removed afterwards; None where none is."""


class JobResult(Struct, frozen=True):
    """What became of one job in this invocation; `over` is false where the wait ended first."""

    job: Job
    record: Record | None
    changed: bool
    over: bool
    error: EngineError | None = None
    log: LogEnd | None = None
    """Of what failed in this invocation, if there was a log."""
    left: bool = False
    """Whether the run had failed, or was cancelled, before this invocation, which left it so."""
    cancelled: bool = False
    """Whether it was cancelled because this invocation ended."""

    @property
    def outdated(self) -> tuple[str, ...]:
        """Fields that ran with other defaults."""
        return outdated_fields(self.job, self.record) if self.error is None else ()


class OnceResult(Struct, frozen=True):
    """What became of the whole invocation."""

    jobs: tuple[JobResult, ...]
    """Every job of the source."""
    timed_out: bool = False
    """Whether --timeout was reached."""
    interrupted: bool = False
    """Whether a signal ended it."""
    as_of: datetime | None = None
    """When it ended, by the server's clock."""


class RunOnce:
    """A job controller over a fixed set of jobs, until each of them is completed."""

    def __init__(self, request: OnceRequest, dependencies: ControllerDependencies) -> None:
        self._request = request
        self._options = options = request.options
        self._dependencies = dependencies
        self._controller = JobController(
            request.client, options, replace(dependencies, emit=self._on_event), stays=False
        )
        self._controller.configure(request.config, request.templates)
        self._jobs = {job.key: job for job in request.jobs}
        self._logs: dict[JobKey, LogEnd] = {}
        """Of the last attempt that failed of each job."""
        self._failed: dict[JobKey, Record] = {}
        """Runs that had failed, or were cancelled, before."""
        self._rerun: set[JobKey] = set()
        """Jobs that run again because of that."""
        self._cancelled: set[JobKey] = set()

    def run(self) -> OnceResult:
        """Bring every job to its end, or to its start.

        Errors, before anything is written: InvalidInputError; UsageError where more runs would
        begin than may; ClusterError. Afterwards every error is a job's own.
        """
        controller, request, options = self._controller, self._request, self._options
        retry_transient(self._list, controller.on_watch_error, timeout=options.timeout)
        states = self._preflight()
        self._check_starts(states)
        for key, (seen, words) in request.refused.items():
            controller.report_refusal(key, seen, INVALID, words)
        # A removal that isn't reported before anything is written doesn't follow afterwards.
        if request.gone is not None:
            for key in request.gone.records.items:
                words = f"no spec in source {options.source} any more; the job will be removed"
                controller.emit(Notice(words, key))
        if request.is_whole:
            new = {one.job.key: one.job.spec_fields for one in states if one.record is None}
            for words in renames(
                new, missed(controller.informers.own_records(), options.source, self._jobs)
            ):
                controller.emit(Notice(words))
        for tracked in states:
            key = tracked.job.key
            if options.rerun_failed and key in self._failed and not self._run_again(tracked):
                continue
            if not tracked.is_finished(options.source) or tracked.needs_cleanup(self._pods(key)):
                controller.queue.add(key)
            else:
                controller.report_unchanged(tracked)
                controller.complete(key)
        cause, timed_out = "", False
        if len(controller.queue):
            try:
                controller.start()
                timed_out = not controller.wait_for_completion(len(self._jobs), options.timeout)
                cause = "reached its --timeout" if timed_out else ""
            except KeyboardInterrupt as signalled:
                cause = "was terminated" if signalled.args == (SIGTERM,) else "was interrupted"
            controller.stop(_SHUTDOWN_TIMEOUT)
        if cause and options.cancel_on_exit:
            cancel = partial(self._cancel, f"engine reconcile {cause} (--cancel-on-exit)")
            with ThreadPoolExecutor(options.concurrency) as pool:
                list(pool.map(cancel, self._jobs))
        results = tuple(map(self._result, self._jobs))
        interrupted = bool(cause) and not timed_out
        return OnceResult(results, timed_out, interrupted, request.client.now())

    def _run_again(self, tracked: TrackedJob) -> bool:
        """Write the record of the new run; False if that is given up.

        A record that has changed since it was read is left as it is now.
        """
        controller, client, key = self._controller, self._request.client, tracked.job.key
        before, again = self._failed.pop(key), tracked.record
        redactor = self._dependencies.redactor
        try:
            with suppress(ConflictError, NotFoundError):
                if again is not None:
                    masked = mask_record(again, redactor.of(key))
                    tracked.record = retry_transient(
                        partial(self._options.records.write, client, masked)
                    )
                    tracked.writes += 1
                    self._rerun.add(key)
                    words = before.explain_end(client.now())
                    controller.emit(Notice(f"{words}; runs again: --rerun-failed", key))
                    return True
            tracked.record = self._options.records.read(client, key)
        except EngineError as error:
            tracked.record = before
            controller.emit(ErrorReported(key, str(error), retrying=False))
            controller.complete(key, error)
            return False
        return True

    def _cancel(self, message: str, key: JobKey) -> None:
        """End a run that this invocation has begun; what it only watched goes on."""
        from engine.reconcile.job_requests import cancel_job  # noqa: PLC0415 - rarely needed

        controller, client = self._controller, self._request.client
        tracked = controller.store.checkout(key)
        if tracked is None or (tracked.record is not None and tracked.record.state.is_final):
            return
        made, record = tracked.observed.created.keys(), tracked.record
        try:
            if record is not None and (key in self._rerun or made & record.pods.keys()):
                if record.open_attempt is not None:
                    controller.on_attempt_end(record, record.open_attempt)
                words = cancel_job(client, key, message, only=tracked.job.spec_hash)
                controller.emit(Notice(words, key))
                tracked.record = self._options.records.read(client, key)
                self._cancelled.add(key)
                controller.complete(key)
            for pod in self._pods(key):  # it was never recorded
                uid = uid_of(pod)
                if uid in made and (record is None or uid not in record.pods):
                    gated = api.get(client, Ref("Pod", key.namespace, name_of(pod)))
                    if gated is not None and uid_of(gated) == uid:
                        api.delete(client, api.PODS, gated["metadata"], NeverRan(gated), grace=0)
        except EngineError as error:
            words = f"could not be cancelled, and goes on: {error.cause}"
            controller.emit(ErrorReported(key, words, retrying=False))

    def prune(self) -> PruneResult:
        """Prune once the jobs are reconciled: pods as last seen, records as first seen."""
        request, options = self._request, self._options
        is_whole, seen = request.is_whole, self._controller.source_state(is_whole=request.is_whole)
        pruner = SourcePruner(
            client=request.client,
            source=options.source,
            ages=is_whole and request.gone is None,
            concurrency=options.concurrency,
        )
        return pruner.prune(request.config, seen, request.gone)

    def _list(self) -> None:
        """Read the records that the jobs need, and pods, all at once. Errors: ClusterError."""
        request, names = self._request, dict[str, list[str]]()
        for key in (*self._jobs, *request.refused):
            names.setdefault(key.namespace, []).append(key.name)
        others, list_jobs = None, self._controller.informers.list_jobs
        with ThreadPoolExecutor(self._options.concurrency, "list") as pool:
            done = [pool.submit(check_server_version, request.client)]
            if request.is_whole:
                done[0].result()  # before it the server's time isn't known
                others = living_or_due(request.client.now(), request.config.records.ttl)
            done += [pool.submit(list_jobs, *one, others) for one in names.items()]
        for one in done:
            one.result()

    def _preflight(self) -> list[TrackedJob]:
        """The jobs whose records can be read; an unreadable one is an error of its job alone.

        Errors: InvalidInputError with every problem of every job.
        """
        controller, states = self._controller, list[TrackedJob]()
        problems, to_create = list[Diagnostic](), list[Job]()
        controller.store.update(self._jobs)
        for key, job in self._jobs.items():
            tracked = controller.store.checkout(key) or TrackedJob(job)
            try:
                tracked.record = controller.informers.records(key.namespace).newest(key, None)
            except BrokenRecordError as error:
                controller.emit(ErrorReported(key, str(error), retrying=False))
                controller.complete(key, error)
                continue
            states.append(tracked)
            record = tracked.record
            over = record is not None and tracked.is_finished(self._options.source)
            if record is not None and over and record.state is not State.SUCCEEDED:
                self._failed[key] = record
                if self._options.rerun_failed:
                    tracked.record = record.again(f"{record.state.lower()} before, {RERUN}")
            if tracked.record is None and not controller.informers.has_objects(key.namespace):
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
        flag, limits = self._options.max_starts, self._request.config.limits
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
        if record is not None and record.source != self._options.source:
            record = None  # what another source's job came to is no result of this one
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
            left=(before := self._failed.get(key)) is not None
            and record is not None
            and record.finished_at == before.finished_at,
            cancelled=key in self._cancelled,
        )

    def _on_event(self, event: Event) -> None:
        if isinstance(event, LogEnd):
            self._logs[event.key] = event  # printed with the result
            return
        if isinstance(event, AttemptFailed):
            self._logs.pop(event.key, None)
        self._dependencies.emit(event)
