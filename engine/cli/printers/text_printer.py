"""Events for people: a line each."""

import threading
from contextlib import suppress
from typing import TextIO

from engine.cli.printers.table import colourise
from engine.cli.printers.text import LONGEST_TEXT, lines_of, one_line, pluralise, truncate_middle
from engine.telemetry.events import (
    AttemptFailed,
    DependentRestored,
    ErrorReported,
    Event,
    InternalError,
    JobGone,
    JobUnchanged,
    JobUnmanaged,
    LabelsChanged,
    LeaderChanged,
    Notice,
    ObjectPruned,
    PodIgnored,
    PodRemoved,
    Progress,
    PullPolicyFallback,
    Ready,
    SpecFixed,
    SpecProblem,
    SpecsRead,
    StateChanged,
    Stopping,
    map_text,
)
from engine.telemetry.redact import Redactor

REPORT_IT = "this is a defect: report it with -vv"
_REPORTED_ACTIONS = frozenset({"deleted", "failed", "invalid"})
_PodEvent = AttemptFailed | PodRemoved | DependentRestored | LabelsChanged | PodIgnored
_EngineEvent = SpecsRead | SpecProblem | SpecFixed | ObjectPruned | LeaderChanged | Ready | Stopping
_LONGEST = 300
"""Columns of a line on a terminal, unless it tells the end of a job."""


class TextPrinter:
    """A line per event; safe to use from several threads.

    Without a time of its own: whoever collects lines (the kubelet, journald) stamps them. An
    output that is gone or closed stops the lines, never the engine. Unless `verbose`, lines on a
    `terminal` are of bounded length; elsewhere they are whole. `tracebacks` has those of internal
    errors follow their lines.
    """

    def __init__(
        self,
        out: TextIO,
        redact: Redactor,
        *,
        verbose: bool,
        colour: bool,
        terminal: bool = False,
        tracebacks: bool = False,
    ) -> None:
        self._out = out
        self._redact = redact
        self._verbose = verbose
        self._colour = colour
        self._longest = _LONGEST if terminal and not verbose else LONGEST_TEXT
        self._tracebacks = tracebacks
        self._lock = threading.Lock()

    def __call__(self, event: Event) -> None:
        """Write the event's line, if it has one at this verbosity."""
        line = self.line(event)
        if self._tracebacks and isinstance(event, InternalError):
            line = f"{line}\n{lines_of(self._redact(event.traceback)).rstrip()}"
        if line:
            with self._lock, suppress(OSError, ValueError):
                self._out.write(line + "\n")
                self._out.flush()

    def line(self, event: Event) -> str:
        """The event's line, masked and on one line."""
        line = one_line(format_event(map_text(event, self._redact), verbose=self._verbose))
        line = truncate_middle(line, self._longest)
        if self._colour and isinstance(event, StateChanged):
            return colourise(line, event.state)
        return line

    def close(self) -> None:
        """Nothing is left open."""


def format_event(event: Event, *, verbose: bool) -> str:
    """One line for an event; "" for what only `-v` tells."""
    match event:
        case StateChanged(key, state, reason, message, attempt):
            number = f" (attempt {attempt})" if attempt > 1 and not state.is_final else ""
            why = f" {reason}" if reason and reason.value != state.value else ""
            told = f": {message}" if message else ""
            return f"{key}: {state}{number}{why}{told}"
        case PullPolicyFallback(key, attempt, container, image, before, after, message):
            return (
                f"{key}: attempt {attempt}, container {container}, image {image}: "
                f"pull policy {before} failed, next is {after}: {message}"
            )
        case JobUnchanged(key, state):
            return f"{key}: {state}, unchanged" if verbose else ""
        case JobUnmanaged(key):
            return f"{key}: spec removed; the job is no longer managed"
        case JobGone(key, source):
            return f"{key}: no spec in source {source} any more; the job will be removed"
        case AttemptFailed() | PodRemoved() | DependentRestored() | LabelsChanged() | PodIgnored():
            return _format_pod_event(event, verbose=verbose)
        case ErrorReported(key, message, retrying):
            where = f"{key}: " if key else ""
            return f"{where}{message}{'; trying again' if retrying else ''}"
        case InternalError(key, component, kind, _, _, retrying):
            again = "; trying again" if retrying else ""
            return f"{key or component}: internal error: {kind} ({REPORT_IT}){again}"
        case Progress():
            return ""
        case Notice(message, detail):
            return f"note: {message}" if verbose or not detail else ""
        case _:
            return _format_engine_event(event, verbose=verbose)


def _format_pod_event(event: _PodEvent, *, verbose: bool) -> str:
    match event:
        case AttemptFailed(key, attempt, _, reason, message):
            told = f": {message}" if message else ""
            return f"{key}: attempt {attempt} failed: {reason}{told}" if verbose else ""
        case PodRemoved(key, pod, why):
            return f"{key}: pod {pod} deleted: {why}" if verbose else ""
        case DependentRestored(key, ref):
            return f"{key}: {ref} was deleted before its pod had started; created again"
        case LabelsChanged(key, pod, labels, refused):
            after = f"can't be put back, the pod is polled: {refused}" if refused else "put back"
            return f"{key}: labels of pod {pod} were changed ({', '.join(labels)}); {after}"
        case PodIgnored(key, pod):
            return f"{key}: pod {pod} is in no record of this job; it is left alone"


def _format_engine_event(event: _EngineEvent, *, verbose: bool) -> str:
    match event:
        case SpecsRead(files, jobs, added, changed, removed):
            is_first = added == jobs > 0
            what = f"specs read: {pluralise(jobs, 'job')} in {pluralise(files, 'file')}"
            news = f"; {added} added, {changed} changed, {removed} removed"
            return f"{what}{news if verbose else ''}" if verbose or is_first else ""
        case SpecProblem(problem):
            return str(problem)
        case SpecFixed(file, gone):
            return f"{file}: {'removed' if gone else 'fixed'}"
        case ObjectPruned(ref, action, reason):
            return f"{ref} {action}: {reason}" if verbose or action in _REPORTED_ACTIONS else ""
        case LeaderChanged(leads, holder):
            return "leading" if leads else f"standing by: {holder or 'nobody'} leads"
        case Ready():
            return "ready"
        case Stopping(reason):
            return f"stopping: {reason}"
