"""The log of one job's containers, of any run, as it is or as it comes."""

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from msgspec import Struct

from engine.cluster import api
from engine.cluster.client import Client
from engine.cluster.logs import LogFollower
from engine.cluster.records import read_record
from engine.errors import EngineError, ExitCode, ForbiddenError, UsageError, no_record
from engine.inspect.view import list_holders
from engine.lifecycle.record import Attempt, Record, RunHistoryEntry
from engine.lifecycle.state import has_ended, is_finished
from engine.refs import MAIN_CONTAINER, JobKey, Ref
from engine.status.containers import ContainerState, container_states
from engine.status.log_container import read_log_container
from engine.status.outcome import State
from engine.status.waiting import read_start_cause

_POLL = 0.5
_UNRECORDED = 10.0
"""Seconds for an engine to record the end of a pod, or to start another attempt."""


class JobLogs(Struct, frozen=True):
    """The logs of one job.

    Errors: UsageError for a job without a record, an attempt or a container that isn't there,
    EngineError where there is no log, or none any more, and those of the API.
    """

    client: Client
    key: JobKey
    container: str = ""
    """"" for the init container that runs or has failed, else the main one."""
    attempt: int | None = None
    """Counts over all runs of a spec, as pods do; None for the newest."""
    run: str = ""
    """Short name of a run, as pods have it; "" for the newest."""
    previous: bool = False
    """Of the run before the newest."""
    tail: int | None = None
    """Begin with the last so many lines."""

    def read(self) -> Iterator[bytes]:
        """The log as it is now, piece by piece."""
        record, target, pod = self._look()
        if target is None:
            cause = f": {record.message}" if record.message else ""
            words = f"the job is {record.state}, and has no pod yet{cause}"
            hint = "-p for the log of the run before" if record.history else ""
            raise self._unavailable(words, hint)
        if pod is None:
            hint = "--logs-dir DIR of reconcile saves logs at the end of each attempt"
            raise self._unavailable(f"pod {target.pod} is gone, and its log with it", hint)
        state = self._container_of(pod)
        if state is None or not (state.has_started or state.last_terminated):
            name = state.name if state is not None else MAIN_CONTAINER
            words = f"container {name} of pod {target.pod} has not started"
            raise self._unavailable(f"{words}: {read_start_cause(pod)}")
        options = {} if self.tail is None else {"tailLines": str(self.tail)}
        return api.read_log(self.client, self._ref(target), state.name, options)

    def follow(self, on_wait: Callable[[str], None]) -> Iterator[bytes]:
        """The log line by line until the job is over, through init containers and attempts.

        `on_wait` gets the cause of a wait, and the container whose log comes next.
        """
        shown: set[tuple[str, str]] = set()
        waits_for: tuple[State, str] | None = None
        ended_at = None
        while True:
            record, target, pod = self._look()
            state = self._container_of(pod) if pod is not None else None
            if target and state and state.has_started and (target.uid, state.name) not in shown:
                shown.add((target.uid, state.name))
                on_wait(
                    f"{self.key}: attempt {target.number}, pod {target.pod}, container {state.name}"
                )
                yield from self._stream(target, state.name)
                ended_at = None
                continue
            has_stopped = pod is None or has_ended(pod)
            if record.state.is_final or (self._names_attempt and has_stopped):
                if not shown:
                    yield from self.read()
                return
            if not shown:
                words = (record.message or record.cause) if pod is None else read_start_cause(pod)
                if waits_for != (record.state, words):
                    waits_for = (record.state, words)
                    cause = f": {words}" if words else ""
                    with suppress(ForbiddenError):
                        holders = list_holders(self.client, (self.key.namespace,))
                        cause += f"; {holders.words(record.source)}"
                    on_wait(f"{self.key} is {record.state}{cause}")
            elif has_stopped:
                ended_at = ended_at or time.monotonic()
                if time.monotonic() > ended_at + _UNRECORDED:
                    words = "its pod has ended, and no engine records that: no longer followed"
                    on_wait(f"{self.key}: {words}")
                    return
            time.sleep(_POLL)

    def exit_code(self) -> int:
        """The job's own, or that of the attempt that is asked for; else what the engine's would be.

        Errors: those of the API.
        """
        record, target, _ = self._look()
        code, reason = record.exit_code, record.reason
        if self._names_attempt and target is not None:
            code, reason = target.exit_code, target.outcome
        if code is None:
            return reason.exit_code if reason is not None else ExitCode.SYSTEM_FAILURE
        return code

    @property
    def _names_attempt(self) -> bool:
        """Whether no later attempt is meant."""
        return self.attempt is not None or self.previous or bool(self.run)

    def _look(self) -> tuple[Record, Attempt | None, dict[str, Any] | None]:
        """The record, the attempt that is asked for, and its pod if that is still there."""
        record = read_record(self.client, self.key)
        if record is None:
            raise no_record(str(self.key))
        target = self._target(record)
        return record, target, self._pod(target) if target is not None else None

    def _target(self, record: Record) -> Attempt | None:
        """The attempt that is asked for. Errors: UsageError if there is none such."""
        runs: list[Record | RunHistoryEntry] = [record, *record.history]
        names = ", ".join(dict.fromkeys(run.run for run in runs))
        if self.previous:
            runs = runs[1:2]
        elif self.run or self.attempt is not None:
            runs = [run for run in runs if run.run == (self.run or record.run)]
        if not runs:
            words = f"no run {self.run}" if self.run else "there is no run before this one"
            raise UsageError(words, where=str(self.key), hint=f"its runs are {names}")
        known = {attempt.number: attempt for run in runs for attempt in run.attempts}
        if self.attempt is None:
            newest = runs[:1] if not self.run else runs
            return next((run.attempts[-1] for run in newest if run.attempts), None)
        if (target := known.get(self.attempt)) is None:
            there = f"there are {', '.join(map(str, sorted(known)))}" if known else "there is none"
            raise UsageError(f"no attempt {self.attempt}: {there}", where=str(self.key))
        return target

    def _pod(self, target: Attempt) -> dict[str, Any] | None:
        pod = api.get(self.client, self._ref(target)) if target.uid else None
        return pod if pod is not None and pod["metadata"]["uid"] == target.uid else None

    def _ref(self, target: Attempt) -> Ref:
        return Ref("Pod", self.key.namespace, target.pod)

    def _container_of(self, pod: dict[str, Any]) -> ContainerState | None:
        wanted = self.container
        if not wanted:
            return read_log_container(pod)
        spec = pod["spec"]
        names = [c["name"] for c in (*spec.get("initContainers", ()), *spec["containers"])]
        if wanted not in names:
            hint = f"one of {', '.join(names)}"
            raise UsageError(f"no container {wanted}", where=str(self.key), hint=hint)
        return next((state for state in container_states(pod) if state.name == wanted), None)

    def _stream(self, target: Attempt, container: str) -> Iterator[bytes]:
        """Its lines until the container has ended, by as many connections as that takes."""
        follower = LogFollower(self.client, self._ref(target), container, tail=self.tail)
        while True:
            yield from follower.lines()
            pod = self._pod(target)
            states = container_states(pod) if pod is not None else ()
            is_running = any(state.running for state in states if state.name == container)
            if pod is None or not is_running or is_finished(pod):
                return
            time.sleep(_POLL)

    def _unavailable(self, words: str, hint: str = "") -> EngineError:
        return EngineError(words, where=str(self.key), hint=hint)
