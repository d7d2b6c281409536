"""What people read about an event: one line each."""

from engine.cli.printers.text import many
from engine.telemetry.events import (
    AttemptFailed,
    DependentRestored,
    ErrorReported,
    Event,
    InternalError,
    JobUnchanged,
    JobUnmanaged,
    LeaderChanged,
    Notice,
    ObjectPruned,
    PodRemoved,
    PullPolicyFallback,
    Ready,
    SpecFixed,
    SpecProblem,
    SpecsRead,
    StateChanged,
    Stopping,
)

REPORT_IT = "this is a defect: report it with -vv"
_WORTH_TELLING = frozenset({"deleted", "failed", "invalid"})
_OfEngine = SpecsRead | SpecProblem | SpecFixed | ObjectPruned | LeaderChanged | Ready | Stopping


def describe(event: Event, *, verbose: bool) -> str:
    """One line for an event; "" for what only `-v` tells."""
    match event:
        case StateChanged(key, state, reason, message, attempt):
            number = f" (attempt {attempt})" if attempt > 1 and not state.is_final else ""
            why = f" {reason}" if reason and reason.value != state.value else ""
            told = f": {message}" if message else ""
            return f"{key}: {state}{number}{why}{told}"
        case PullPolicyFallback(key, attempt, container, before, after, message):
            return (
                f"{key}: attempt {attempt}, container {container}: pull policy {before} failed, "
                f"next is {after}: {message}"
            )
        case AttemptFailed(key, attempt, _, reason, message):
            told = f": {message}" if message else ""
            return f"{key}: attempt {attempt} failed: {reason}{told}" if verbose else ""
        case PodRemoved(key, pod, why):
            return f"{key}: pod {pod} deleted: {why}" if verbose else ""
        case JobUnchanged(key, state):
            return f"{key}: {state}, unchanged" if verbose else ""
        case JobUnmanaged(key):
            return f"{key}: its spec is gone, it is no longer looked after"
        case DependentRestored(key, ref):
            return f"{key}: {ref} was deleted before its pod had started; created again"
        case ErrorReported(key, message, retrying):
            where = f"{key}: " if key else ""
            return f"{where}{message}{'; trying again' if retrying else ''}"
        case InternalError(key, component, kind, _, _, retrying):
            again = "; trying again" if retrying else ""
            return f"{key or component}: internal error: {kind} ({REPORT_IT}){again}"
        case Notice(message):
            return f"note: {message}"
        case _:
            return _of_engine(event, verbose=verbose)


def _of_engine(event: _OfEngine, *, verbose: bool) -> str:
    match event:
        case SpecsRead(files, jobs, added, changed, removed):
            is_first = added == jobs > 0
            what = f"specs read: {many(jobs, 'job')} in {many(files, 'file')}"
            news = f"; {added} added, {changed} changed, {removed} removed"
            return f"{what}{news if verbose else ''}" if verbose or is_first else ""
        case SpecProblem(problem):
            return problem
        case SpecFixed(file):
            return f"{file}: mended"
        case ObjectPruned(ref, action, reason):
            return f"{ref} {action}: {reason}" if verbose or action in _WORTH_TELLING else ""
        case LeaderChanged(leads, holder):
            return "leading" if leads else f"standing by: {holder or 'nobody'} leads"
        case Ready():
            return "ready"
        case Stopping(reason):
            return f"stopping: {reason}"
