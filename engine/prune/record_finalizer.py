"""Save the logs of a pod of the engine's, and its outcome in the record, before it is deleted."""

import tempfile
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from engine.cluster import api
from engine.cluster.client import Client
from engine.cluster.records import read_record, recorded_pod_uids, write_record
from engine.errors import (
    AlreadyExistsError,
    BrokenRecordError,
    ConflictError,
    EngineError,
    NotFoundError,
)
from engine.lifecycle.record import Record
from engine.lifecycle.state import is_finished, is_terminating
from engine.prune.candidate import PruneCandidate
from engine.refs import JobKey, Ref
from engine.status.containers import container_states, started_at
from engine.status.deletion import read_end
from engine.status.outcome import Outcome, Reason

_LIST_AFTER = 20
_MAX_WRITES = 5


class NotSavedError(EngineError):
    """Something of the pod would be lost, so the pod stays."""


class RecordFinalizer:
    """Safe to use from several threads.

    Guarantees: an attempt whose pod is deleted by prune is never left open in its record.
    """

    def __init__(self, client: Client, logs_dir: Path | None = None) -> None:
        self._client = client
        self._logs_dir = logs_dir
        self._lock = threading.Lock()
        self._asked: Counter[str] = Counter()
        self._closed: dict[str, frozenset[str]] = {}
        """By namespace, UIDs of pods whose outcome is in a record."""

    def finalize(self, candidate: PruneCandidate, reason: str, dry_run: Callable[[], bool]) -> None:
        """Save logs and outcome of a pod; any other object needs nothing.

        `dry_run` tries the delete before a job that still runs is recorded as cancelled. It returns
        whether the pod is still there.
        Errors: NotSavedError, BrokenRecordError; and those of `dry_run`.
        """
        key = candidate.job
        if key is None or candidate.resource.kind != "Pod":
            return
        if self._logs_dir is not None:
            self._save_logs(candidate, self._logs_dir / key.namespace / candidate.ref.name)
        if not self._is_known_closed(candidate):
            self._close_attempt(key, candidate, reason, dry_run)

    def _close_attempt(
        self, key: JobKey, candidate: PruneCandidate, reason: str, dry_run: Callable[[], bool]
    ) -> None:
        checked = False
        for _ in range(_MAX_WRITES):
            record = self._read(key)
            attempt = record.open_attempt if record is not None else None
            if record is None or attempt is None or attempt.uid != candidate.uid:
                return
            pod = api.get(self._client, candidate.ref)
            if pod is None or pod["metadata"]["uid"] != candidate.uid:
                return
            outcome = read_end(pod)
            if outcome is None:
                if is_terminating(pod) or not (checked or dry_run()):
                    return
                checked = True
                outcome = Outcome(Reason.CANCELLED, f"pruned before it had finished: {reason}")
            attempt = replace(attempt, started_at=attempt.started_at or started_at(pod))
            if self._write(record.with_attempt_closed(attempt, outcome, self._client.now())):
                return
        raise _not_recorded("the record keeps changing")

    def _read(self, key: JobKey) -> Record | None:
        try:
            return read_record(self._client, key)
        except BrokenRecordError:
            raise
        except EngineError as error:
            raise _not_recorded(error) from error

    def _write(self, record: Record) -> bool:
        """Whether the record was written; False if it has changed since it was read."""
        try:
            write_record(self._client, record)
        except (ConflictError, AlreadyExistsError, NotFoundError):
            return False
        except EngineError as error:
            raise _not_recorded(error) from error
        return True

    def _is_known_closed(self, candidate: PruneCandidate) -> bool:
        """After some pods of a namespace its records are read at once, not one by one."""
        namespace = candidate.ref.namespace
        with self._lock:
            self._asked[namespace] += 1
            if self._asked[namespace] <= _LIST_AFTER:
                return False
            if namespace not in self._closed:
                self._closed[namespace] = _closed_pods(self._client, namespace)
            return candidate.uid in self._closed[namespace]

    def _save_logs(self, candidate: PruneCandidate, folder: Path) -> None:
        """Write FOLDER/container.log for every container that has started.

        Guarantees: a file is whole or not there. Errors: NotSavedError for a finished pod; of one
        that runs, what can be read is saved.
        """
        pod = api.get(self._client, candidate.ref)
        if pod is None or pod["metadata"]["uid"] != candidate.uid:
            return
        for name in (state.name for state in container_states(pod) if state.has_started):
            path = folder / f"{name}.log"
            try:
                _save_log(self._client, candidate.ref, name, path)
            except (EngineError, OSError) as error:
                if is_finished(pod):
                    words = error.cause if isinstance(error, EngineError) else _cause(error, path)
                    raise NotSavedError(f"its log could not be saved: {name}: {words}") from error


def _not_recorded(why: object) -> NotSavedError:
    return NotSavedError(f"its outcome could not be recorded: {why}")


def _closed_pods(client: Client, namespace: str) -> frozenset[str]:
    """UIDs of pods whose outcome is in a record; none if the records can't be read."""
    try:
        return frozenset(recorded_pod_uids(client, namespace))
    except EngineError:
        return frozenset()


def _save_log(client: Client, pod: Ref, container: str, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    file = tempfile.NamedTemporaryFile(dir=path.parent, prefix=".", delete=False)  # noqa: SIM115 - closed in the try
    unfinished = Path(file.name)
    try:
        with file:
            for chunk in api.read_log(client, pod, container):
                file.write(chunk)
        unfinished.replace(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


def _cause(error: OSError, path: Path) -> str:
    """As `no space left on device: PATH`, or the file that is in the place of a folder."""
    if isinstance(error, FileExistsError | NotADirectoryError):
        path = next(filter(Path.is_file, path.parents), path)
        return f"not a directory: {path}"
    return f"{(error.strerror or str(error)).lower()}: {path}"
