"""Save the logs of an attempt's containers as soon as it has ended: pods go."""

from dataclasses import dataclass

from engine.cluster import api
from engine.cluster.client import Client
from engine.cluster.logs import LogArchive
from engine.errors import EngineError
from engine.lifecycle.record import Attempt
from engine.refs import JobKey, Ref
from engine.status.containers import container_states
from engine.telemetry.events import Emit, Notice

_TIMEOUT = 5.0
"""Seconds that a job's end waits for a node that is silent."""


@dataclass(frozen=True, slots=True)
class AttemptLogs:
    """Guarantees: what can't be saved is a warning, and changes no outcome."""

    client: Client
    emit: Emit
    archive: LogArchive

    def save(self, key: JobKey, attempt: Attempt) -> None:
        """To be called once, before the pod of the attempt is deleted."""
        ref = Ref("Pod", key.namespace, attempt.pod)
        if not attempt.uid:
            return
        try:
            pod = api.get(self.client, ref, timeout=_TIMEOUT)
            if pod is None or pod["metadata"]["uid"] != attempt.uid:
                if attempt.started_at is not None:
                    self._report_unsaved(key, attempt, "the pod is gone")
                return
        except EngineError as error:
            self._report_unsaved(key, attempt, error.cause)
            return
        for name in (one.name for one in container_states(pod) if one.has_started):
            try:
                self.archive.save(self.client, ref, name, timeout=_TIMEOUT)
            except EngineError as error:
                self._report_unsaved(key, attempt, f"{name}: {error.cause}")
            except OSError as error:
                words = f"{error.strerror}: {self.archive.folder}"
                self._report_unsaved(key, attempt, words)

    def _report_unsaved(self, key: JobKey, attempt: Attempt, cause: str) -> None:
        words = f"the log of pod {attempt.pod} could not be saved: {cause}"
        self.emit(Notice(words, key, warning=True))
