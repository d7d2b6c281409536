"""Keep the end of a failed container's log, as soon as its attempt has failed: pods go."""

import threading
from contextlib import suppress
from dataclasses import replace

from engine.cluster import api
from engine.cluster.client import Client
from engine.cluster.logs import read_log_end
from engine.errors import EngineError
from engine.reconcile.once_result import JobResult, LogEnd, OnceResult
from engine.refs import JobKey, Ref
from engine.status.log_container import read_log_container
from engine.status.outcome import Reason, State
from engine.telemetry.events import AttemptFailed, Event

_LINES = 20
_TIMEOUT = 5.0
"""Seconds that a job's end waits for a node that is silent."""
_WITH_A_LOG = frozenset(
    {
        Reason.SCRIPT_FAILED,
        Reason.DEADLINE_EXCEEDED,
        Reason.OOM_KILLED,
        Reason.CONTAINER_CONFIG_ERROR,
        Reason.START_TIMEOUT,
    }
)
"""Outcomes of pods that are still there, in which a container may have run."""


class FailureLogs:
    """An `Emit` listener; safe to use from several threads.

    Guarantees: best effort, no failure of its own gets in the way of a job.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._lock = threading.Lock()
        self._ends: dict[JobKey, LogEnd] = {}

    def __call__(self, event: Event) -> None:
        """Read the log of an attempt that has failed."""
        if isinstance(event, AttemptFailed):
            end = None
            if event.reason in _WITH_A_LOG:
                with suppress(EngineError):
                    end = self._read(event)
            with self._lock:
                self._ends.pop(event.key, None)
                if end is not None:
                    self._ends[event.key] = end

    def add_to(self, result: OnceResult) -> OnceResult:
        """`result` with the logs of the jobs that have failed."""
        return replace(result, jobs=tuple(map(self._add, result.jobs)))

    def _add(self, job: JobResult) -> JobResult:
        record = job.record
        if record is None or record.state is not State.FAILED:
            return job
        return replace(job, log=self._ends.get(job.job.key))

    def _read(self, event: AttemptFailed) -> LogEnd | None:
        ref = Ref("Pod", event.key.namespace, event.pod)
        pod = api.get(self._client, ref, timeout=_TIMEOUT)
        state = read_log_container(pod) if pod is not None else None
        if state is None:
            return None
        name = state.name
        lines = read_log_end(self._client, ref, name, lines=_LINES, timeout=_TIMEOUT)
        return LogEnd(event.attempt, event.pod, name, tuple(lines)) if lines else None
