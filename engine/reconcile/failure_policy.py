"""What becomes of a job whose reconcile raised: one policy for both ways of running.

An error affects its job alone. The job is tried again with back-off, of 15 s at most where another
try, a new namespace or the end of another's run may help. Else it is of 5 minutes at most. An error
is reported at the third failure in a row, or at once if another try can't mend it. The same error
is reported once. An engine that doesn't stay gives the job up: at once where trying again can't
mend it, else after `retry_timeout`.
"""

import time

from engine.errors import EngineError, InvalidInputError, NotFoundError, SupersededError
from engine.reconcile.job_store import TrackedJob
from engine.runtime.retry import backoff
from engine.runtime.supervisor import Supervisor
from engine.telemetry.events import ErrorReported, SpecProblem

_REPORT_AFTER = 3
_FIRST_WAIT, _MAX_BACKOFF, _MAX_BACKOFF_PERMANENT = 0.1, 15.0, 300.0
_DEFECT = "this is a defect: report it with -vv"


def judge_failure(
    tracked: TrackedJob, error: Exception, retry_timeout: float | None, supervisor: Supervisor
) -> float | EngineError:
    """Report `error` where that is due. Without a `retry_timeout` no job is given up.

    In how many seconds the job is tried again; or the error for which it is given up.
    """
    key, now = tracked.job.key, time.monotonic()
    tracked.failures += 1
    if tracked.failures == 1:
        tracked.failing_since = now
    defect = EngineError(f"internal error: {type(error).__name__}", hint=_DEFECT)
    known = error if isinstance(error, EngineError) else defect
    lasting = retry_timeout is not None and now - tracked.failing_since > retry_timeout
    gives_up = lasting or (retry_timeout is not None and not known.retryable)
    events: tuple[SpecProblem | ErrorReported, ...] = ()
    if known is not error:
        supervisor.report("job controller", error, key, retrying=not gives_up)
    elif isinstance(error, InvalidInputError) and not gives_up:
        events = tuple(map(SpecProblem, error.problems))
    elif gives_up or not known.retryable or tracked.failures >= _REPORT_AFTER:
        is_retried = not (gives_up or isinstance(known, SupersededError))
        events = (ErrorReported(key, str(known), retrying=is_retried),)
    if events and tracked.reported_error != str(events):
        tracked.reported_error = str(events)
        for event in events:
            supervisor.emit(event)
    if gives_up:
        return known
    is_brief = known.retryable or isinstance(known, NotFoundError | SupersededError)
    longest = _MAX_BACKOFF if is_brief else _MAX_BACKOFF_PERMANENT
    return max(backoff(tracked.failures, first=_FIRST_WAIT, longest=longest), known.retry_after)
