"""When a job is tried again, is given up, or needs no more of an engine that doesn't stay."""

import threading
import time
from dataclasses import dataclass

from engine.errors import EngineError, InvalidInputError, NotFoundError
from engine.reconcile.job_store import TrackedJob
from engine.reconcile.reconciler import Result
from engine.refs import JobKey
from engine.runtime.supervisor import Supervisor
from engine.runtime.workqueue import ItemRateLimiter
from engine.telemetry.events import Emit, ErrorReported, SpecProblem

_REPORT_AFTER = 3
_MAX_BACKOFF, _MAX_BACKOFF_PERMANENT = 15.0, 300.0
_DEFECT = "this is a defect: report it with -vv"


@dataclass(frozen=True, slots=True)
class StopCondition:
    """When a job needs no more of an engine that doesn't stay. Times are seconds."""

    started: bool
    """Whether it is enough that its attempt was started."""
    queue_timeout: float
    """How long a quota or a webhook may refuse it."""
    retry_timeout: float = 300.0
    """How long the cluster may fail; what trying again can't mend isn't tried again at all."""


class CompletionTracker:
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

    def is_satisfied(self, tracked: TrackedJob, result: Result, until: StopCondition) -> bool:
        """Whether the end of this job is waited for no longer."""
        key = tracked.job.key
        if result.started and until.started:
            return True
        if tracked.observed.rejection is None:
            self._queued_since.pop(key, None)
            return False
        since = self._queued_since.setdefault(key, time.monotonic())
        return time.monotonic() - since > until.queue_timeout


class FailurePolicy:
    """One for all jobs of a controller, in both ways of running. Safe to use from several threads.

    An error of a reconcile affects its job alone. The job is tried again with back-off: up to 15 s
    after an error that another try or a new namespace may mend, else up to 5 minutes. An error is
    reported at the third failure in a row, or at once if another try can't mend it. The same error
    is reported once. With
    `until` the job is given up at once where trying again can't mend it, else after
    `retry_timeout`; without it, never.
    """

    def __init__(self, emit: Emit, supervisor: Supervisor, until: StopCondition | None) -> None:
        self.rate_limiter = ItemRateLimiter()
        self._emit = emit
        self._supervisor = supervisor
        self._until = until
        self._failing_since: dict[JobKey, float] = {}

    def judge(self, tracked: TrackedJob, error: Exception) -> float | EngineError:
        """Report `error` where that is due.

        In how many seconds the job is tried again; or the error for which it is given up.
        """
        if isinstance(error, EngineError):
            return self._judge_error(tracked, error)
        return self._judge_defect(tracked.job.key, error)

    def succeeded(self, tracked: TrackedJob) -> None:
        """The next failure is the first one again."""
        self.forget(tracked.job.key)
        tracked.reported.error = ""

    def forget(self, key: JobKey) -> None:
        """What has failed so far counts no more."""
        self.rate_limiter.forget(key)
        self._failing_since.pop(key, None)

    def _judge_error(self, tracked: TrackedJob, error: EngineError) -> float | EngineError:
        key = tracked.job.key
        if self._gives_up(key, error):
            self._emit(ErrorReported(key, str(error), retrying=False))
            return error
        is_brief = error.retryable or isinstance(error, NotFoundError)
        longest = _MAX_BACKOFF if is_brief else _MAX_BACKOFF_PERMANENT
        wait = self.rate_limiter.when(key, longest=longest)
        if isinstance(error, InvalidInputError):
            self._report(tracked, *map(SpecProblem, error.problems))
        elif not error.retryable or self.rate_limiter.failures(key) >= _REPORT_AFTER:
            self._report(tracked, ErrorReported(key, str(error), retrying=True))
        return max(wait, error.retry_after)

    def _judge_defect(self, key: JobKey, error: Exception) -> float | EngineError:
        """The same, for what is no error of the cluster or of a spec."""
        found = EngineError(f"internal error: {type(error).__name__}", hint=_DEFECT)
        gives_up = self._gives_up(key, found)
        self._supervisor.report("job controller", error, key, retrying=not gives_up)
        if gives_up:
            return found
        return self.rate_limiter.when(key, longest=_MAX_BACKOFF_PERMANENT)

    def _gives_up(self, key: JobKey, error: EngineError) -> bool:
        since = self._failing_since.setdefault(key, time.monotonic())
        until = self._until
        return until is not None and (
            not error.retryable or time.monotonic() - since > until.retry_timeout
        )

    def _report(self, tracked: TrackedJob, *events: SpecProblem | ErrorReported) -> None:
        """Once for as long as the cause stays the same."""
        words = str(events)
        if tracked.reported.error != words:
            tracked.reported.error = words
            for event in events:
                self._emit(event)
