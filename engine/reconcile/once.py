"""`reconcile --once`: bring every job of a source to its end, then stop.

Nothing is written before everything that can be checked has been: secrets, templates, namespaces,
the right to read. A source whose jobs are all over costs a few reads and no watch, and a watch
begins where the reads ended, once a job has to wait.
"""

from collections.abc import Sequence
from typing import Any

from engine.api.model import Config, Job
from engine.cluster.client import Client
from engine.cluster.records import RecordList
from engine.cluster.server import check_server_version
from engine.decide.record import Record
from engine.errors import BrokenRecordError
from engine.prune.removed import find_gone
from engine.reconcile.controller import ControllerDependencies, JobController, Until
from engine.reconcile.job_state import JobState
from engine.reconcile.once_result import JobResult, OnceOptions, OnceResult, WaitFor
from engine.reconcile.preflight import preflight
from engine.reconcile.start_brake import new_run, start_limit
from engine.refs import JobKey
from engine.render.templates import Templates
from engine.runtime.retry import retry_transient
from engine.telemetry.events import ErrorReported, JobGone, JobUnchanged

_SHUTDOWN_TIMEOUT = 10.0


class RunOnce:
    """A job controller over a fixed set of jobs, until each of them is completed."""

    def __init__(
        self,
        client: Client,
        jobs: Sequence[Job],
        config: Config,
        options: OnceOptions,
        templates: Templates,
        dependencies: ControllerDependencies,
    ) -> None:
        self._client = client
        self._jobs = {job.key: job for job in jobs}
        self._namespaces = sorted({key.namespace for key in self._jobs})
        self._options = options
        self._dependencies = dependencies
        until = Until(options.wait_for is WaitFor.APPLIED, options.queue_timeout)
        self._controller = JobController(
            client, options.source, options.concurrency, dependencies, until
        )
        self._render_config = self._controller.configure(config, templates)
        self.gone: RecordList | None = None
        """Records of the jobs that are to be removed afterwards; None where none is."""

    def run(self) -> OnceResult:
        """Errors: InvalidInputError and its kin before anything was written, UsageError where more
        runs would begin than may, ClusterError when
        the cluster is too old, or can't be reached or read; afterwards every error is a job's own.
        """
        controller, options = self._controller, self._options
        retry_transient(self._list, controller.on_watch_error, timeout=options.timeout)
        controller.store.update(self._jobs)
        states = [self._state(job) for job in self._jobs.values()]
        unfinished = [
            state
            for state in states
            if not state.is_finished(options.source) and state.job.key not in controller.completed
        ]
        self._preflight(unfinished)
        self._require_few_starts(unfinished)
        self._announce_removals()
        waiting = [key for state in states if self._needs_work(state) and (key := state.job.key)]
        timed_out = interrupted = False
        if waiting:
            for key in waiting:
                controller.queue.add(key)
            controller.start(min(options.concurrency, len(waiting)))
            try:
                timed_out = not controller.wait_until_completed(len(states), options.timeout)
            except KeyboardInterrupt:
                interrupted = True
            controller.stop(_SHUTDOWN_TIMEOUT)
        results = tuple(self._result(state) for state in states)
        return OnceResult(results, timed_out, interrupted)

    def pods(self) -> list[dict[str, Any]]:
        """Every pod of the source in the namespaces of its jobs, as last seen."""
        informers = self._controller.informers
        return [pod for name in self._namespaces for pod in informers.pods(name).all_items()]

    def records(self) -> list[Record]:
        """Every record of the namespaces of its jobs, of whichever source, as first seen."""
        informers = self._controller.informers
        return [r for name in self._namespaces for r in informers.records(name).all_records()]

    def _list(self) -> None:
        check_server_version(self._client)
        self._controller.informers.list_all(self._namespaces)

    def _state(self, job: Job) -> JobState:
        """A record that can't be read is an error of its job alone."""
        controller, key = self._controller, job.key
        state = controller.store.checkout(key) or JobState(job)
        try:
            state.record = controller.informers.records(key.namespace).newest(key, None)
        except BrokenRecordError as error:
            controller.emit(ErrorReported(key, str(error), retrying=False))
            controller.complete(key, error)
        return state

    def _preflight(self, unfinished: Sequence[JobState]) -> None:
        started = {
            state.job.key for state in unfinished if state.is_started(self._pods_of(state.job.key))
        }
        environment, redactor = self._dependencies.environment, self._dependencies.redactor
        preflight(self._client, unfinished, started, self._render_config, environment, redactor)

    def _require_few_starts(self, unfinished: Sequence[JobState]) -> None:
        limit = start_limit(self._options.max_starts, self._controller.config.limits)
        if limit.most is None:
            return
        found = {
            state.job.key: new_run(state.job, state.record, self._pods_of(state.job.key))
            for state in unfinished
        }
        limit.require({key: why for key, why in found.items() if why is not None})

    def _announce_removals(self) -> None:
        """What isn't reported before anything is written isn't removed after it."""
        options = self._options
        if options.prune_in is None:
            return
        self.gone = find_gone(self._client, options.source, self._jobs.keys(), options.prune_in)
        for key in self.gone.items:
            self._controller.emit(JobGone(key, options.source))

    def _needs_work(self, state: JobState) -> bool:
        key = state.job.key
        if key in self._controller.completed:
            return False
        finished = state.is_finished(self._options.source)
        if not finished or state.needs_cleanup(self._pods_of(key)):
            return True
        if state.record is not None:
            self._controller.emit(JobUnchanged(key, state.record.state))
        self._controller.complete(key)
        return False

    def _pods_of(self, key: JobKey) -> tuple[dict[str, Any], ...]:
        return self._controller.informers.pods(key.namespace).items(key)

    def _result(self, state: JobState) -> JobResult:
        completed = self._controller.completed
        return JobResult(
            state.job,
            state.unrecorded or state.record,
            changed=state.writes > 0,
            over=state.job.key in completed,
            error=completed.get(state.job.key),
        )
