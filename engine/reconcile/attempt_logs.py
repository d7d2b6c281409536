"""What an attempt's containers wrote, as soon as it has ended: pods go."""

from contextlib import suppress
from dataclasses import dataclass, field

from engine.cluster import api
from engine.cluster.client import Client
from engine.cluster.discovery import is_allowed
from engine.cluster.logs import LogArchive, read_log_end
from engine.errors import EngineError
from engine.lifecycle.record import Attempt, Record
from engine.refs import JobKey, Ref, Right
from engine.status.containers import container_states
from engine.status.log_container import read_log_container
from engine.status.outcome import Reason
from engine.telemetry.events import Emit, LogEnd, Notice

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
"""Failures of pods that are still there, in which a container may have run."""


@dataclass(frozen=True, slots=True)
class AttemptLogs:
    """Reports the end of the log of what failed, and saves whole logs if it has an archive.

    Guarantees: what can't be read is left out; what can't be saved is a warning, and changes no
    outcome.
    """

    client: Client
    emit: Emit
    archive: LogArchive | None = None
    asks_first: bool = False
    """Whether it asks for the right: a refused request is in the server's audit log."""
    _allowed: dict[str, bool] = field(default_factory=dict)
    """By namespace."""

    def attempt_ended(self, record: Record, attempt: Attempt) -> None:
        """To be called once, before the pod of the attempt is deleted."""
        key = record.key
        failed = attempt.outcome in _WITH_A_LOG and self._may_read(key.namespace)
        if not attempt.uid or not (failed or self.archive):
            return
        ref = Ref("Pod", key.namespace, attempt.pod)
        try:
            pod = api.get(self.client, ref, timeout=_TIMEOUT)
            if pod is None or pod["metadata"]["uid"] != attempt.uid:
                if attempt.started_at is not None:
                    self._report_unsaved(key, attempt, "the pod is gone")
                return
        except EngineError as error:
            self._report_unsaved(key, attempt, error.cause)
            return
        state = read_log_container(pod) if failed else None
        if state is not None:
            self._report_end(record, attempt, state.name)
        if self.archive is not None:
            for name in (one.name for one in container_states(pod) if one.has_started):
                self._save(self.archive, key, attempt, name)

    def _save(self, archive: LogArchive, key: JobKey, attempt: Attempt, container: str) -> None:
        try:
            archive.save(
                self.client, Ref("Pod", key.namespace, attempt.pod), container, timeout=_TIMEOUT
            )
        except EngineError as error:
            self._report_unsaved(key, attempt, f"{container}: {error.cause}")
        except OSError as error:
            self._report_unsaved(key, attempt, f"{error.strerror}: {archive.folder}")

    def _report_end(self, record: Record, attempt: Attempt, container: str) -> None:
        ref = Ref("Pod", record.key.namespace, attempt.pod)
        with suppress(EngineError):
            lines = read_log_end(self.client, ref, container, lines=_LINES, timeout=_TIMEOUT)
            if lines:
                text = "\n".join(lines)
                position = record.position(attempt)
                self.emit(LogEnd(record.key, position, attempt.pod, container, text))

    def _report_unsaved(self, key: JobKey, attempt: Attempt, cause: str) -> None:
        if self.archive is not None:
            words = f"the log of pod {attempt.pod} could not be saved: {cause}"
            self.emit(Notice(words, key, warning=True))

    def _may_read(self, namespace: str) -> bool:
        if self.asks_first and namespace not in self._allowed:
            self._allowed[namespace] = False
            with suppress(EngineError):
                self._allowed[namespace] = is_allowed(
                    self.client, Right("get", "pods/log"), namespace
                )
        return not self.asks_first or self._allowed[namespace]
