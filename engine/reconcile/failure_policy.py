"""What becomes of a job whose reconcile raised: when it is tried again, and what is reported."""

import time
from dataclasses import dataclass

from engine.errors import EngineError, InvalidInputError, NotFoundError
from engine.reconcile.completion import Until
from engine.reconcile.job_state import JobState
from engine.refs import JobKey
from engine.runtime.rate_limiter import ItemRateLimiter
from engine.runtime.supervisor import Supervisor
from engine.telemetry.events import Emit, ErrorReported, SpecProblem

_REPORT_AFTER = 3
_MAX_BACKOFF, _MAX_BACKOFF_PERMANENT = 15.0, 300.0
_DEFECT = "this is a defect: report it with -vv"


@dataclass(frozen=True, slots=True)
class GiveUp:
    """The job isn't tried again."""

    error: EngineError


class FailurePolicy:
    """One for all jobs of a controller, in both ways of running. Safe to use from several threads.

    What a reconcile raises is its job's alone. It is tried again with back-off, up to 15 s where
    that may mend it, or somebody makes the namespace that is missing, and up to 5 minutes where it
    can't. It is reported at the third failure in a
    row, and at once where trying again can't mend it; once for as long as it stays the same. With
    `until` the job is given up at once where trying again can't mend it, else after
    `retry_timeout`; without it, never.
    """

    def __init__(self, emit: Emit, supervisor: Supervisor, until: Until | None) -> None:
        self.rate_limiter = ItemRateLimiter()
        self._emit = emit
        self._supervisor = supervisor
        self._until = until
        self._failing_since: dict[JobKey, float] = {}

    def judge(self, state: JobState, error: Exception) -> float | GiveUp:
        """Report `error` where that is due; in how many seconds the job is tried again."""
        if isinstance(error, EngineError):
            return self._judge_error(state, error)
        return self._judge_defect(state.job.key, error)

    def succeeded(self, state: JobState) -> None:
        """The next failure is the first one again."""
        self.forget(state.job.key)
        state.reported.error = ""

    def forget(self, key: JobKey) -> None:
        """What has failed so far counts no more."""
        self.rate_limiter.forget(key)
        self._failing_since.pop(key, None)

    def _judge_error(self, state: JobState, error: EngineError) -> float | GiveUp:
        key = state.job.key
        if self._gives_up(key, error):
            self._emit(ErrorReported(key, str(error), retrying=False))
            return GiveUp(error)
        is_brief = error.retryable or isinstance(error, NotFoundError)
        longest = _MAX_BACKOFF if is_brief else _MAX_BACKOFF_PERMANENT
        wait = self.rate_limiter.when(key, longest=longest)
        if isinstance(error, InvalidInputError):
            self._report(state, *map(SpecProblem, error.problems))
        elif not error.retryable or self.rate_limiter.failures(key) >= _REPORT_AFTER:
            self._report(state, ErrorReported(key, str(error), retrying=True))
        return max(wait, error.retry_after)

    def _judge_defect(self, key: JobKey, error: Exception) -> float | GiveUp:
        """The same, for what is no error of the cluster or of a spec."""
        found = EngineError(f"internal error: {type(error).__name__}", hint=_DEFECT)
        gives_up = self._gives_up(key, found)
        self._supervisor.report("job controller", error, key, retrying=not gives_up)
        if gives_up:
            return GiveUp(found)
        return self.rate_limiter.when(key, longest=_MAX_BACKOFF_PERMANENT)

    def _gives_up(self, key: JobKey, error: EngineError) -> bool:
        since = self._failing_since.setdefault(key, time.monotonic())
        until = self._until
        return until is not None and (
            not error.retryable or time.monotonic() - since > until.retry_timeout
        )

    def _report(self, state: JobState, *events: SpecProblem | ErrorReported) -> None:
        """Once for as long as the cause stays the same."""
        words = str(events)
        if state.reported.error != words:
            state.reported.error = words
            for event in events:
                self._emit(event)
