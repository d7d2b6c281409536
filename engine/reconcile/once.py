"""`reconcile --once`: bring every job of a source to its end, then stop.

Nothing is written before everything that can be checked has been: secrets, templates, namespaces,
the right to read. A source whose jobs are all over costs a few reads and no watch, and a watch
begins where the reads ended, once a job has to wait.
"""

from engine.api.model import Job
from engine.decide.standing import as_observed
from engine.errors import BrokenRecordError
from engine.reconcile.completion import Until
from engine.reconcile.controller import ControllerDependencies, JobController
from engine.reconcile.job_state import JobState
from engine.reconcile.once_jobs import OnceJobs, OnceRequest
from engine.reconcile.once_result import JobResult, OnceResult, WaitFor
from engine.telemetry.events import ErrorReported, JobGone, JobUnchanged

_SHUTDOWN_TIMEOUT = 10.0


class RunOnce:
    """A job controller over a fixed set of jobs, until each of them is completed."""

    def __init__(self, request: OnceRequest, dependencies: ControllerDependencies) -> None:
        self._options = options = request.options
        until = Until(options.wait_for is WaitFor.APPLIED, options.queue_timeout)
        self._controller = controller = JobController(
            request.client, options.source, options.concurrency, dependencies, until
        )
        render_config = controller.configure(request.config, request.templates)
        self.jobs = OnceJobs(
            request, dependencies, controller.informers, render_config, controller.on_watch_error
        )

    def run(self) -> OnceResult:
        """Errors: InvalidInputError and its kin before anything was written, UsageError where more
        runs would begin than may, ClusterError when
        the cluster is too old, or can't be reached or read; afterwards every error is a job's own.
        """
        controller, jobs, options = self._controller, self.jobs, self._options
        jobs.list(options.timeout)
        controller.store.update(jobs.by_key)
        states = [self._state(job) for job in jobs.by_key.values()]
        unfinished = jobs.preflight(s for s in states if s.job.key not in controller.completion)
        jobs.require_few_starts(unfinished)
        self._announce_removals()
        waiting = [key for state in states if self._needs_work(state) and (key := state.job.key)]
        timed_out = interrupted = False
        if waiting:
            for key in waiting:
                controller.queue.add(key)
            controller.start(min(options.concurrency, len(waiting)))
            try:
                timed_out = not controller.completion.wait(len(states), options.timeout)
            except KeyboardInterrupt:
                interrupted = True
            controller.stop(_SHUTDOWN_TIMEOUT)
        results = tuple(self._result(state) for state in states)
        return OnceResult(results, timed_out, interrupted)

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

    def _announce_removals(self) -> None:
        """What isn't reported before anything is written isn't removed after it."""
        self.jobs.find_gone()
        for key in self.jobs.gone.items if self.jobs.gone is not None else ():
            self._controller.emit(JobGone(key, self._options.source))

    def _needs_work(self, state: JobState) -> bool:
        key = state.job.key
        if key in self._controller.completion:
            return False
        finished = state.is_finished(self._options.source)
        if not finished or state.needs_cleanup(self.jobs.pods_of(key)):
            return True
        if state.record is not None:
            self._controller.emit(JobUnchanged(key, state.record.state))
        self._controller.complete(key)
        return False

    def _result(self, state: JobState) -> JobResult:
        completed = self._controller.completion.errors
        record = state.record and as_observed(state.record, self.jobs.pods_of(state.job.key))
        return JobResult(
            state.job,
            state.unrecorded or record,
            changed=state.writes > 0,
            over=state.job.key in completed,
            error=completed.get(state.job.key),
        )
