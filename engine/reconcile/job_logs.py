"""What the containers of one job wrote: as it is, as it comes, or as it was saved."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.cluster import api
from engine.cluster.client import Client
from engine.cluster.logs import LogFollower
from engine.cluster.records import read_record
from engine.decide.log_target import LogTarget, log_target
from engine.decide.record import Record
from engine.decide.situation import has_ended, is_finished
from engine.errors import LogUnavailableError, NoRecordError, UsageError
from engine.refs import MAIN_CONTAINER, JobKey, Ref
from engine.status.containers import ContainerState, container_states
from engine.status.log_container import read_log_container
from engine.status.start import read_start_cause

_POLL = 0.5
_UNRECORDED = 10.0
"""Seconds for an engine to record the end of a pod, or to start another attempt."""
_CHUNK = 65_536


@dataclass(frozen=True, slots=True)
class LogRequest:
    """What is asked for."""

    container: str = ""
    """The container; "" for the one that tells where the job stands."""
    attempt: int | None = None
    """The attempt's number; None for the newest."""
    previous: bool = False
    """Whether the attempt before that one is meant."""
    tail: int | None = None
    """Begin with the last so many lines."""
    logs_dir: Path | None = None
    """Where --logs-dir of `prune` or `reconcile` saved the logs of pods that are gone."""


class JobLogs:
    """The logs of one job.

    Errors: UsageError for a job without a record, an attempt or a container that isn't there,
    LogUnavailableError where there is no log, or none any more, and those of the API.
    """

    def __init__(self, client: Client, key: JobKey, request: LogRequest) -> None:
        self._client = client
        self._key = key
        self._request = request

    def read(self) -> Iterator[bytes]:
        """The log as it is now, piece by piece."""
        record = self._record()
        target = self._target(record)
        if target is None:
            words = f"the job is {record.state}, and has no pod yet"
            raise LogUnavailableError(
                f"{words}: {record.message}" if record.message else words, where=str(self._key)
            )
        pod = self._pod(target)
        if pod is None:
            return self._saved(target)
        state = self._container(pod)
        name = state.name if state is not None else MAIN_CONTAINER
        if state is None or not (state.has_started or state.last_terminated):
            words = f"container {name} of pod {target.pod} has not started"
            raise LogUnavailableError(f"{words}: {read_start_cause(pod)}", where=str(self._key))
        tail = self._request.tail
        options = {} if tail is None else {"tailLines": str(tail)}
        return api.read_log(self._client, self._ref(target), name, options)

    def follow(self, on_wait: Callable[[str], None]) -> Iterator[bytes]:
        """The log line by line until the job is over, through init containers and attempts.

        `on_wait` is told what is waited for, and which container's log comes next.
        """
        shown: set[tuple[str, str]] = set()
        ended_at = None
        while True:
            record = self._record()
            target = self._target(record)
            pod = self._pod(target) if target is not None else None
            state = self._container(pod) if pod is not None else None
            if target and state and state.has_started and (target.uid, state.name) not in shown:
                shown.add((target.uid, state.name))
                on_wait(f"attempt {target.number}, pod {target.pod}, container {state.name}")
                yield from self._follow(target, state.name)
                ended_at = None
                continue
            has_stopped = pod is None or has_ended(pod)
            if record.state.is_final or (self._is_fixed and has_stopped):
                if not shown:
                    yield from self.read()
                return
            if shown and has_stopped:
                ended_at = ended_at or time.monotonic()
                if time.monotonic() > ended_at + _UNRECORDED:
                    on_wait("its pod has ended, and no engine has recorded that; not followed on")
                    return
            elif not shown:
                words = record.message if pod is None else read_start_cause(pod)
                on_wait(f"{record.state}: {words}" if words else record.state)
            time.sleep(_POLL)

    @property
    def _is_fixed(self) -> bool:
        """Whether one attempt alone is meant, so that no other one is waited for."""
        return self._request.attempt is not None or self._request.previous

    def _record(self) -> Record:
        record = read_record(self._client, self._key)
        if record is None:
            raise NoRecordError(str(self._key))
        return record

    def _target(self, record: Record) -> LogTarget | None:
        return log_target(record, self._request.attempt, previous=self._request.previous)

    def _pod(self, target: LogTarget) -> dict[str, Any] | None:
        """The very pod of the attempt: another one may have its name by now."""
        pod = api.get(self._client, self._ref(target)) if target.uid else None
        return pod if pod is not None and pod["metadata"]["uid"] == target.uid else None

    def _ref(self, target: LogTarget) -> Ref:
        return Ref("Pod", self._key.namespace, target.pod)

    def _container(self, pod: dict[str, Any]) -> ContainerState | None:
        wanted = self._request.container
        if not wanted:
            return read_log_container(pod)
        spec = pod["spec"]
        names = [c["name"] for c in (*spec.get("initContainers", ()), *spec["containers"])]
        if wanted not in names:
            hint = f"one of {', '.join(names)}"
            raise UsageError(f"no container {wanted}", where=str(self._key), hint=hint)
        return next((state for state in container_states(pod) if state.name == wanted), None)

    def _follow(self, target: LogTarget, container: str) -> Iterator[bytes]:
        ref = self._ref(target)
        follower = LogFollower(self._client, ref, container, tail=self._request.tail)
        while True:
            yield from follower.lines()
            pod = self._pod(target)
            states = container_states(pod) if pod is not None else ()
            state = next((state for state in states if state.name == container), None)
            if pod is None or state is None or not state.running or is_finished(pod):
                return
            time.sleep(_POLL)

    def _saved(self, target: LogTarget) -> Iterator[bytes]:
        """From the folder that logs were saved in."""
        folder, where = self._request.logs_dir, str(self._key)
        gone = f"pod {target.pod} is gone, and its log with it"
        if folder is None:
            hint = "--logs-dir DIR of prune and reconcile saves logs before pods go;"
            raise LogUnavailableError(gone, where=where, hint=f"{hint} here it shows them")
        container = self._request.container or MAIN_CONTAINER
        file = folder / self._key.namespace / target.pod / f"{container}.log"
        try:
            text = file.read_bytes()
        except OSError as error:
            words = f"pod {target.pod} is gone, and its log was not saved: {error.strerror}"
            raise LogUnavailableError(words, where=str(file)) from None
        if self._request.tail is not None:
            lines = text.splitlines(keepends=True)
            text = b"".join(lines[-self._request.tail :] if self._request.tail else [])
        return (text[at : at + _CHUNK] for at in range(0, len(text), _CHUNK))
