"""When a job of `reconcile --once` needs no more, and waiting until none of them does."""

import threading
import time
from dataclasses import dataclass

from engine.errors import EngineError
from engine.reconcile.job_state import JobState
from engine.reconcile.reconciler import Result
from engine.refs import JobKey


@dataclass(frozen=True, slots=True)
class Until:
    """When a job needs no more of an engine that doesn't stay. Times are seconds."""

    started: bool
    """Whether it is enough that its attempt was started."""
    queue_timeout: float
    """How long a quota or a webhook may refuse it."""
    retry_timeout: float = 300.0
    """How long the cluster may fail; what trying again can't mend isn't tried again at all."""


class Completion:
    """The jobs that need no more. Safe to use from several threads."""

    def __init__(self) -> None:
        self.errors: dict[JobKey, EngineError | None] = {}
        """Why each was given up; None for one that wasn't."""
        self._condition = threading.Condition()
        self._queued_since: dict[JobKey, float] = {}

    def __contains__(self, key: JobKey) -> bool:
        return key in self.errors

    def add(self, key: JobKey, error: EngineError | None = None) -> None:
        """The job needs no more; `error` is why it was given up."""
        with self._condition:
            self.errors[key] = error
            self._condition.notify_all()

    def wait(self, count: int, timeout: float | None) -> bool:
        """Whether so many jobs are completed within `timeout` seconds; None is for ever."""
        deadline = None if timeout is None else time.monotonic() + timeout
        with self._condition:
            while len(self.errors) < count:
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    return False
                self._condition.wait(min(left or 3600.0, 3600.0))
        return True

    def is_enough(self, state: JobState, result: Result, until: Until) -> bool:
        """Whether nobody waits for the end of this job any longer."""
        key = state.job.key
        if result.started and until.started:
            return True
        if state.observed.rejection is None:
            self._queued_since.pop(key, None)
            return False
        since = self._queued_since.setdefault(key, time.monotonic())
        return time.monotonic() - since > until.queue_timeout
