"""`reconcile --once`: bring every job of a source to its end, then stop.

Nothing is written before everything that can be checked has been: secrets, templates, namespaces,
the right to read. A source whose jobs are all over costs a few reads and no watch, and a watch
begins where the reads ended, once a job has to wait.
"""

import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

from engine.api.model import Config, Job
from engine.cluster.client import Client
from engine.cluster.records import list_records
from engine.cluster.server import check_server_version
from engine.decide.record import Record
from engine.errors import EngineError, OwnershipError
from engine.reconcile.attempt_manifests import Rendering
from engine.reconcile.attend import attend
from engine.reconcile.memory import JobMemory
from engine.reconcile.once_result import JobResult, OnceOptions, OnceResult, WaitFor
from engine.reconcile.preflight import preflight
from engine.reconcile.reconciler import Reconciler, Result
from engine.reconcile.run_state import has_work, is_over, is_under_way
from engine.reconcile.steps import Steps
from engine.reconcile.watches import Listeners, Watches
from engine.refs import JobKey
from engine.render.templates import Templates
from engine.render.variables import SecretValues
from engine.runtime.rate_limiter import ItemRateLimiter
from engine.runtime.retry import retry_transient
from engine.runtime.supervisor import Supervisor
from engine.runtime.workers import Workers
from engine.runtime.workqueue import WorkQueue
from engine.telemetry.events import Emit, JobUnchanged, Trouble
from engine.telemetry.redact import Redactor

_GIVE_UP_AFTER = 300.0
_LAST_STEP = 10.0
_SAY_AFTER = 3


class OnceRun:
    """One invocation over a fixed set of jobs."""

    def __init__(
        self,
        client: Client,
        jobs: Sequence[Job],
        config: Config,
        options: OnceOptions,
        templates: Templates,
        emit: Emit,
    ) -> None:
        self._client = client
        self._jobs = {job.key: job for job in jobs}
        self._config = config
        self._options = options
        self._templates = templates
        self._emit = emit
        self._queue: WorkQueue[JobKey] = WorkQueue()
        self._limit = ItemRateLimiter()
        self._memories: dict[JobKey, JobMemory] = {}
        self._condition = threading.Condition()
        self._settled: set[JobKey] = set()
        self._errors: dict[JobKey, EngineError] = {}
        self._failing_since: dict[JobKey, float] = {}
        self._queued_since: dict[JobKey, float] = {}
        self._watches = Watches(
            client,
            options.source,
            sorted({key.namespace for key in self._jobs}),
            Listeners(self._pod_changed, self._queue.add_after, self._watch_trouble),
        )

    def run(self, environment: Mapping[str, str], redactor: Redactor) -> OnceResult:
        """Errors: InvalidInputError and its kin before anything was written, ClusterError when
        the cluster is too old, or can't be reached or read; afterwards every error is a job's own.
        """
        rendering = retry_transient(
            lambda: self._look(environment, redactor),
            self._watch_trouble,
            timeout=self._options.timeout,
        )
        waiting = []
        for key, memory in self._memories.items():
            record = memory.record
            if key in self._settled:
                continue
            if (
                record is not None
                and is_over(memory, self._options.source)
                and not has_work(memory.job, record, self._pods_of(key))
            ):
                self._settled.add(key)
                self._emit(JobUnchanged(key, record.state))
            else:
                waiting.append(key)
        if not waiting:
            return self._result()
        reconciler = Reconciler(
            self._client,
            Steps(self._client, rendering, self._watches.pods, redactor),
            source=self._options.source,
            pull=self._config.pull,
            features=self._config.features,
            emit=self._emit,
        )
        return self._work(reconciler, waiting)

    def pods(self) -> list[dict[str, Any]]:
        """Every pod of the source in the namespaces of its jobs, as last seen."""
        namespaces = {key.namespace for key in self._jobs}
        return [pod for name in namespaces for pod in self._watches.pods(name).all_pods()]

    def _look(self, environment: Mapping[str, str], redactor: Redactor) -> Rendering:
        """The version first. Records, then pods: one that is in a record can't be missed so."""
        check_server_version(self._client)
        rendering = Rendering(self._templates, self._options.source, self._config.limits)
        namespaces = sorted({key.namespace for key in self._jobs})
        records: dict[JobKey, Record] = {}
        for namespace in namespaces:
            listed = list_records(self._client, namespace)
            records |= listed.items
            for key in self._jobs.keys() & listed.invalid.keys():
                self._settle(key, listed.invalid[key])
        self._watches.sync()
        memories = [JobMemory(job, SecretValues(), records.get(k)) for k, job in self._jobs.items()]
        self._memories = {memory.job.key: memory for memory in memories}
        unfinished = [
            memory
            for memory in memories
            if not is_over(memory, self._options.source) and memory.job.key not in self._settled
        ]
        under_way = [
            memory for memory in unfinished if is_under_way(memory, self._pods_of(memory.job.key))
        ]
        preflight(self._client, unfinished, under_way, rendering, environment, redactor)
        return rendering

    def _work(self, reconciler: Reconciler, waiting: Sequence[JobKey]) -> OnceResult:
        for key in waiting:
            self._queue.add(key)
        count = min(self._options.concurrency, len(waiting))
        workers = Workers(
            self._queue, lambda key: self._attend(reconciler, key), count, Supervisor(self._emit)
        )
        workers.start()
        timed_out = interrupted = False
        try:
            timed_out = not self._wait(len(self._memories))
        except KeyboardInterrupt:
            interrupted = True
        workers.stop(_LAST_STEP)
        self._watches.stop()
        return self._result(timed_out=timed_out, interrupted=interrupted)

    def _wait(self, count: int) -> bool:
        limit = self._options.timeout
        deadline = None if limit is None else time.monotonic() + limit
        with self._condition:
            while len(self._settled) < count:
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    return False
                self._condition.wait(min(left or 3600.0, 3600.0))
        return True

    def _attend(self, reconciler: Reconciler, key: JobKey) -> bool:
        if key in self._settled:
            return True
        memory = self._memories[key]
        result = attend(self._client, reconciler, self._watches.line, memory)
        if isinstance(result, EngineError):
            self._failed(key, result)
        else:
            self._limit.forget(key)
            self._failing_since.pop(key, None)
            self._after(key, memory, result)
        if key not in self._settled:
            self._watches.listen(key.namespace)
        return True

    def _after(self, key: JobKey, memory: JobMemory, result: Result) -> None:
        if result.refused:
            self._settle(key, OwnershipError(result.refused, hint="give its own --source"))
        elif (
            result.over
            or (result.applied and self._options.wait_for is WaitFor.APPLIED)
            or self._queued_too_long(key, memory)
        ):
            self._settle(key)
        elif result.again_at is not None:
            self._queue.add_after(key, (result.again_at - self._client.now()).total_seconds())

    def _queued_too_long(self, key: JobKey, memory: JobMemory) -> bool:
        if memory.refusal is None:
            self._queued_since.pop(key, None)
            return False
        since = self._queued_since.setdefault(key, time.monotonic())
        return time.monotonic() - since > self._options.queue_timeout

    def _failed(self, key: JobKey, error: EngineError) -> None:
        began = self._failing_since.setdefault(key, time.monotonic())
        if not error.retryable or time.monotonic() - began > _GIVE_UP_AFTER:
            self._settle(key, error)
            return
        wait = self._limit.when(key)
        if self._limit.failures(key) == _SAY_AFTER:
            self._emit(Trouble(key, str(error), retrying=True))
        self._queue.add_after(key, max(wait, getattr(error, "retry_after", 0.0)))

    def _settle(self, key: JobKey, error: EngineError | None = None) -> None:
        self._watches.line.leave(key)
        if error is not None:
            self._errors[key] = error
            self._emit(Trouble(key, str(error), retrying=False))
        with self._condition:
            self._settled.add(key)
            self._condition.notify_all()

    def _pod_changed(self, key: JobKey) -> None:
        if key in self._memories:
            self._queue.add(key)

    def _watch_trouble(self, message: str) -> None:
        self._emit(Trouble(None, message, retrying=True))

    def _pods_of(self, key: JobKey) -> tuple[dict[str, Any], ...]:
        return self._watches.pods(key.namespace).pods(key)

    def _result(self, *, timed_out: bool = False, interrupted: bool = False) -> OnceResult:
        jobs = tuple(
            JobResult(
                memory.job,
                memory.record,
                changed=memory.writes > 0,
                over=key in self._settled,
                error=self._errors.get(key),
            )
            for key, memory in self._memories.items()
        )
        return OnceResult(jobs, timed_out, interrupted)
